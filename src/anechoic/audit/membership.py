"""Membership inference against the final model: how far theory is from what an outsider gets.

A small federation is trained again and again; which of two records one of its machines holds falls like a coin. The
outsider sees the model that comes out and nothing else, and knows everything but the coin and the noise: all other
records, who took part, and the models of as many shadow runs as it learns from. In one form it looks at the loss of the
record, in the other at the whole model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anechoic.algorithms import find
from anechoic.audit.distinguisher import Told, judged, promised
from anechoic.audit.findings import Finding
from anechoic.audit.target import BOUND, DIAMETER, Effort, Ints, Target
from anechoic.engines.run import train
from anechoic.federation import Federation
from anechoic.privacy.conversions import Route
from anechoic.privacy.ledger import Floats, Ledger
from anechoic.privacy.noise import generator
from anechoic.privacy.schedules import named_schedule
from anechoic.privacy.strategies import named_strategy
from anechoic.problems import Ball, BinaryLogistic
from anechoic.records import Records

MACHINES, FEATURES = 4, 3


def infer_membership(target: Target, effort: Effort, told: Told = lambda _: None) -> Iterator[Finding]:
    """Carry out the attack in both forms; ``effort.runs`` is the number of training runs."""
    many = find(target.algorithm).card.passes == "many"
    size = target.batch * (1 if target.reads_again else 2 if many else target.rounds) * (2 if target.pooled else 1)
    rng = generator(effort.seed, "split")
    features = rng.standard_normal((MACHINES, size, FEATURES))
    features *= BOUND / np.linalg.norm(features, axis=2, keepdims=True)
    labels = rng.choice([-1.0, 1.0], (MACHINES, size))
    wanted = features[0, 0]
    problem = BinaryLogistic(FEATURES, Ball(DIAMETER), bound=BOUND)
    coins: Ints = generator(effort.seed, "participation", 3).integers(0, 2, effort.runs)
    models: Floats = np.empty((effort.runs, FEATURES))
    ledgers: list[Ledger] = []
    for index, coin in enumerate(coins.tolist()):
        labels[0, 0] = 2 * coin - 1
        shards = [Records(features[name], labels[name].copy()) for name in range(MACHINES)]
        run = train(
            problem,
            Federation.of_shards(shards),
            target.algorithm,
            participants=MACHINES,
            rounds=target.rounds,
            rho=target.rho,
            batch=1 if many or (target.reads_again and not target.pooled) else target.batch,
            whole_shards=target.whole_shards,
            schedule=named_schedule(target.schedule, target.rounds, 1.0),
            strategy=named_strategy(target.strategy),
            grid=target.grid,
            sampling=target.sampling,
            releases=target.releases,
            pooled=target.pooled,
            seed=effort.seed * effort.runs + index,
        )
        models[index] = run.model
        ledgers = ledgers or [run.ledger]
        told(index + 1)
    route = Route.EXACT if target.grid is None else Route.WHOLE
    promise, proven = promised(target.rho, ledgers, route)
    seat = "an outsider's: the final model, with shadow runs to learn from"
    margins = (models @ wanted)[:, None]
    yield judged("membership, by the record's loss", seat, coins, margins, promise, effort, [proven])
    yield judged("membership, by the model", seat, coins, models, promise, effort, [proven])
