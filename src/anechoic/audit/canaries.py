"""Many canaries in one run, on real machines: nodes with stores on a disk and noise from the system's entropy.

Every node is asked once for what a run asks of it, going back now and then; nothing is repeated over thousands of runs,
so this is an audit of the software as it is installed. As many records as there is room for are canaries: their labels
fell like coins, and each shows in a coordinate of its own. The adversary guesses those that it is surest of. What that
proves is a matter of theory, for the canaries share one run: :func:`one_run_epsilon` for any mechanism,
:func:`one_run_mu` for one whose trade-off is Gaussian. Both are valid, and far from tight; the law of the noise, which
is tested as well, is not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from anechoic.algorithms import find
from anechoic.algorithms.base import Algorithm, Query
from anechoic.audit.distinguisher import CERTIFIED, LEARNT, Played, Told, apart, law_of, promised
from anechoic.audit.evidence import best_direction, one_run_epsilon, one_run_mu
from anechoic.audit.findings import Check, Finding, Scores
from anechoic.audit.held import check_stores
from anechoic.audit.promises import Gaussian, Secret
from anechoic.audit.seat import watch
from anechoic.audit.target import Effort, Ints, Target, calls, forked, next_query, shard_of
from anechoic.engines.machine import hash_of
from anechoic.errors import BadInput
from anechoic.privacy.conversions import Route
from anechoic.privacy.ledger import Floats, Ledger
from anechoic.privacy.noise import generator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Ask, unpack

SHARES = (0.1, 1.0)
"""How many of the canaries are guessed, the surest first: a few prove most where noise hides much, all where little.

Both are tried, at half of the doubt each.
"""

AMPLE = 10.0
"""The nodes' budget in units of ρ: what a machine does before it refuses is what is audited."""


def find_canaries(target: Target, effort: Effort, told: Told = lambda _: None) -> Finding:
    """Carry out the attack; ``effort.runs`` is the number of canaries, ``effort.together`` of those on one machine."""
    if find(target.algorithm).noise_by == "server":
        return _judged("other machines': the queries of one run", watch(target, effort, told), target, effort)
    if target.whole_shards:
        raise BadInput(
            "a federation's releases use fresh records, so there are no real machines to audit whole shards on"
        )
    if target.secret:
        raise BadInput(
            "records are drawn in secret in simulations alone, so there are no real machines to audit that on"
        )
    rule, proposal = _agreed(target, effort)
    parents = forked(calls(rule))
    with tempfile.TemporaryDirectory(prefix="anechoic-audit-") as folder:
        played = _run(rule, proposal, parents, Path(folder), effort, told)
        stores = check_stores(sorted(Path(folder).iterdir())[:CERTIFIED], effort.doubt / 20)
    doubt = effort.doubt / 20
    checks = (law_of(rule, played, len(parents), doubt), apart(played.silent, effort.together, doubt), *stores)
    played = played._replace(checks=(*played.checks, *checks))
    return _judged("the server's: every message of one run on real machines", played, target, effort)


def _judged(seat: str, played: Played, target: Target, effort: Effort) -> Finding:
    """Learn from the first canaries, guess the surest of the others, and say what the guesses prove."""
    straight = find(target.algorithm).noise_by == "server"
    route = Route.EXACT if straight else Route.WHOLE
    promise, proven = promised(target.rho if straight else np.inf, played.ledgers, route)
    learnt = int(LEARNT * len(played.coins))
    known, coins = played.coins[:learnt], played.coins[learnt:]
    weights, border = best_direction(played.seen[:learnt][known == 0], played.seen[:learnt][known == 1])
    ratings = played.seen[learnt:] @ weights - border
    return in_one_run("canaries", seat, promise, ratings, coins, effort, (proven, *played.checks))


def in_one_run(
    attack: str,
    seat: str,
    promise: Gaussian | Secret,
    ratings: Floats,
    coins: Ints,
    effort: Effort,
    checks: tuple[Check, ...],
) -> Finding:
    """Guess the canaries that ratings are surest of, above 0 for a coin of 1, and say what the guesses prove."""
    hits, doubt = ((ratings > 0) == (coins == 1))[np.argsort(-np.abs(ratings))], effort.doubt / len(SHARES)
    proofs = []
    for count in (max(1, int(share * len(coins))) for share in SHARES):
        right = int(hits[:count].sum())
        any_mechanism = one_run_epsilon(len(coins), count, right, effort.delta, doubt)
        proofs.append((one_run_mu(len(coins), count, right, doubt), any_mechanism, count, right))
    mu, _, count, right = max(proofs)
    return Finding(
        attack=attack,
        seat=seat,
        promise=promise,
        proven=Gaussian(mu),
        epsilon_any=max(any_mechanism for _, any_mechanism, *_ in proofs),
        delta=effort.delta,
        confidence=effort.confidence,
        runs=count,
        right=right,
        checks=checks,
        scores=Scores(ratings[coins == 0], ratings[coins == 1]),
        told={"canaries": len(coins)},
    )


def _agreed(target: Target, effort: Effort) -> tuple[Algorithm, Proposal]:
    """Return the run that the server proposes, and the algorithm that it stands for."""
    like = target.rule(effort.together)
    nodes = -(-effort.runs // effort.together)
    proposal = Proposal(
        run="audit",
        algorithm=target.algorithm,
        machines=nodes,
        participants=nodes,
        rounds=target.rounds,
        rho=target.rho,
        batch=like.setting.batch,
        records=like.setting.records,
        releases=like.setting.releases,
        pooled=target.pooled,
        schedule=target.schedule,
        strategy=target.strategy,
        grid=target.grid,
    )
    return proposal.rule(like.problem), proposal


def _run(rule: Algorithm, proposal: Proposal, parents: list[int], folder: Path, effort: Effort, told: Told) -> Played:
    """Ask every node; acknowledge what no later release goes back behind, and repeat each question at once."""
    together, nodes, dimension = effort.together, proposal.machines, rule.problem.dimension
    coins = generator(effort.seed, "participation", 2).integers(0, 2, (nodes, together))
    sent: Floats = np.empty((nodes, len(parents), dimension))
    policy = Policy(rho=AMPLE * proposal.rho, sampler="staircase")
    ledgers: list[Ledger] = []
    unlike = 0
    for index in range(nodes):
        node = Node(rule.problem, shard_of(rule, coins[index]), folder / f"machine{index:04}", policy)
        query: Query = next_query(None, 0, rule.clip, dimension)
        for place, parent in enumerate(parents):
            ask = Ask(query, parent, min(parents[place:]), place)
            answer = node.answer(proposal, ask)
            unlike += index < CERTIFIED and node.answer(proposal, ask).message != answer.message
            unlike += answer.question != hash_of(query)
            sent[index, place] = unpack(answer.message, dimension) * (rule.setting.grid or 1.0)
            query = next_query(sent[index, place], place + 1, rule.clip, dimension)
        if index < CERTIFIED:
            with Store(node.directory) as store:
                ledgers.append(store.ledger())
        told(min(effort.runs, (index + 1) * together))
    halves = np.moveaxis(sent, 1, 2).reshape(nodes, 2, together, len(parents)).swapaxes(0, 1)
    records, silent = halves.reshape(2, -1, len(parents))[:, : effort.runs]
    whole = all(len(ledger) == len(parents) for ledger in ledgers)
    checks = (
        Check("a repeated question gets the same bytes", not unlike, f"{unlike} of {len(ledgers) * len(parents)} not"),
        Check("every release is in the ledger", whole, f"{len(parents)} releases, {len(ledgers[0])} rows"),
    )
    return Played(coins.ravel()[: effort.runs], records, silent, ledgers, checks)
