"""The strongest distinguisher: who sees every message, chooses every query, and wants to know one record.

In every game a machine, the one that a federation runs, holds one of two neighbouring data sets by the toss of a coin.
The adversary asks it as a server that lies does: queries that the last message shapes and that push the record to its
clip, parents as it likes. From the first games, whose coins it is told, it learns the linear rule that tells
transcripts apart best; for Gaussian transcripts that is the likelihood ratio. Where records are drawn in secret, the
likelihood ratio is not linear, and :mod:`~anechoic.audit.secret` has it. Then it guesses the other coins. The ledger is
read for what it claims and for nothing else.

A machine may play many games at once, with as many records that each show in a coordinate of their own. That is as
many times quicker, and the same game as long as coordinates have nothing to do with each other, which is tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from anechoic.algorithms.base import Algorithm, Keeps, Query
from anechoic.audit.evidence import best_direction, epsilon_from_errors
from anechoic.audit.findings import Check, Finding, Scores
from anechoic.audit.law import ALIKE, LAW, check_law
from anechoic.audit.promises import Gaussian, Secret
from anechoic.audit.secret import check_drawing, rate
from anechoic.audit.target import Effort, Ints, Target, calls, forked, next_query, shard_of, straight, unrolled
from anechoic.engines.machine import Machine, hash_of
from anechoic.errors import AnechoicError, Refused
from anechoic.privacy.budget import ROUNDING, Budget
from anechoic.privacy.certificate import certify
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.ledger import Floats, Ledger
from anechoic.privacy.noise import Lots, NoiseSource, SeededGaussian, SeededWhole, generator
from anechoic.privacy.sampling import DELTA, calibrated
from anechoic.records import Vector

LEARNT = 0.2
"""Share of the games from which the adversary learns."""

NEAR = 1e-3
"""By how much, relatively, rounding may lift an ε above the one that noise was fitted to."""

CERTIFIED = 8
"""How many machines are asked everything twice, and have their ledgers certified; the others' are alike."""

TREES = ("straight", "forked")

Told = Callable[[int], None]


class Played(NamedTuple):
    """All games of one attack."""

    coins: Ints
    seen: Floats
    """What was sent in the record's coordinate, games × releases."""
    silent: Floats
    """What was sent where no record shows."""
    ledgers: list[Ledger]
    checks: tuple[Check, ...]


def distinguish(target: Target, effort: Effort, tree: str = "straight", told: Told = lambda _: None) -> Finding:
    """Attack a machine from the server's seat.

    Parameters
    ----------
    target, effort
        What is audited, and how hard.
    tree : {'straight', 'forked'}
        Whether each release is built on the last, or some go back.
    told : callable
        Called with the number of games played so far.
    """
    rule, together, doubt = target.rule(effort.together), effort.together, effort.doubt / 20
    parents = straight(calls(rule)) if tree == "straight" else forked(calls(rule))
    played = play(rule, parents, effort, told)
    route = Route.EXACT if target.grid is None else Route.WHOLE
    promise, proven = promised(target.rho if tree == "straight" else np.inf, played.ledgers, route)
    checks = [proven, *played.checks, law_of(rule, played, len(parents), doubt), apart(played.silent, together, doubt)]
    if tree == "straight":
        checks.append(check_budget(target, len(parents), effort.seed))
    attack, seat = f"distinguisher, {tree}", "the server's: every message, and every query of its own choice"
    ratings = None
    if isinstance(promise, Secret):
        told_of = played.ledgers[0]
        length, sigma = float(told_of.uses.sensitivity[0]) / 2, float(told_of.releases.sigma[0])
        shown = -played.seen  # the loss of a record falls towards its label
        ratings = rate(promise.drawing, length / sigma, shown / sigma, played.coins, learnt(effort), together)
        signed = shown * (2 * played.coins - 1)[:, None] / length
        checks.append(check_drawing(promise.drawing, signed, together, doubt))
    return judged(attack, seat, played.coins, played.seen, promise, effort, checks, ratings)


def judged(
    attack: str,
    seat: str,
    coins: Ints,
    seen: Floats,
    promise: Gaussian | Secret,
    effort: Effort,
    checks: Sequence[Check] = (),
    ratings: Floats | None = None,
) -> Finding:
    """Learn from the first games, guess in the others, and say what the guesses prove.

    ``ratings`` are of all games, higher ones for the second record; by default those of the best linear rule.
    """
    delta, doubt, first = effort.delta, effort.doubt, learnt(effort)
    known = coins[:first]
    if ratings is None:
        weights, border = best_direction(seen[:first][known == 0], seen[:first][known == 1])
        ratings = seen @ weights - border
    sure = surest(ratings[:first][known == 0], ratings[:first][known == 1], delta, doubt)
    coins, ratings = coins[first:], ratings[first:]
    without, with_ = ratings[coins == 0], ratings[coins == 1]
    alarms, misses = int((without > sure).sum()), int((with_ <= sure).sum())
    right = int((without <= 0).sum() + (with_ > 0).sum())
    return Finding(
        attack=attack,
        seat=seat,
        promise=promise,
        proven=promise.proven(right, len(coins), doubt),
        epsilon_any=epsilon_from_errors(alarms, len(without), misses, len(with_), delta, doubt),
        delta=delta,
        confidence=effort.confidence,
        runs=len(coins),
        right=right,
        checks=tuple(checks),
        scores=Scores(without, with_),
    )


def learnt(effort: Effort) -> int:
    """Return from how many games the adversary learns."""
    return int(LEARNT * effort.runs)


def surest(without: Floats, with_: Floats, delta: float, doubt: float) -> float:
    """Return the border at which errors prove most, chosen where the coins are known."""
    borders = np.quantile(np.concatenate([without, with_]), np.linspace(0.01, 0.99, 99))
    proofs = [
        epsilon_from_errors(
            int((without > border).sum()), len(without), int((with_ <= border).sum()), len(with_), delta, doubt
        )
        for border in borders
    ]
    return float(borders[int(np.argmax(proofs))])


def play(rule: Algorithm, parents: Sequence[int], effort: Effort, told: Told) -> Played:
    """Play all games; each machine draws its noise as machine so-and-so of one federation."""
    games, together, seed = effort.runs, effort.together, effort.seed
    machines = -(-games // together)
    coins = generator(seed, "participation", 1).integers(0, 2, (machines, together))
    sent = np.empty((machines, len(parents), rule.problem.dimension))
    ledgers: list[Ledger] = []
    unlike = 0
    for index in range(machines):
        ledger, shard = Ledger(rule.setting.sampling), shard_of(rule, coins[index])
        noise, lots = source(rule, seed, index), Lots(seed, index)
        machine = Machine(index, shard, rule, noise, ledger, Budget(np.inf), lots=lots)
        twice, asked_before = index < CERTIFIED, []
        for place, parent in enumerate(parents):
            query = next_query(sent[index, place - 1] if place else None, place, rule.clip, rule.problem.dimension)
            asked = hash_of(query) if twice else ""
            sent[index, place] = machine.answer(query, parent, asked).message
            asked_before.append((query, parent))
        if twice:
            unlike += sum(not _again(machine, *asked) for asked in zip(asked_before, sent[index], strict=True))
            ledgers.append(ledger)
        told(min(games, (index + 1) * together))
    whole = all(len(ledger) == len(parents) for ledger in ledgers)
    sent *= rule.setting.grid or 1.0
    records, silence = np.moveaxis(sent, 1, 2).reshape(machines, 2, together, len(parents)).swapaxes(0, 1)
    checks = (
        Check("a repeated question gets the same bytes", not unlike, f"{unlike} of {len(ledgers) * len(parents)} not"),
        Check("every release is in the ledger", whole, f"{len(parents)} releases, {len(ledgers[0])} rows"),
    )
    return Played(
        coins.ravel()[:games],
        records.reshape(-1, len(parents))[:games],
        silence.reshape(-1, len(parents))[:games],
        ledgers,
        checks,
    )


def _again(machine: Machine, asked: tuple[Query, int], before: Vector) -> bool:
    """Repeat a question, and tell whether the answer is the one that it got before."""
    try:
        return np.array_equal(machine.answer(*asked, hash_of(asked[0])).message, before)
    except Refused:
        return False


def source(rule: Algorithm, seed: int, machine: int) -> NoiseSource:
    """Return the noise of a machine in a simulation."""
    return SeededGaussian(seed, machine) if rule.setting.grid is None else SeededWhole(seed, machine)


def promised(rho: float, ledgers: Sequence[Ledger], route: Route = Route.EXACT) -> tuple[Gaussian | Secret, Check]:
    """Return what was promised: what was asked for, or less where the ledgers prove less."""
    name = "the ledger proves what was asked for" if np.isfinite(rho) else "the ledger proves a guarantee"
    drawing = ledgers[0].drawn
    asked = Gaussian(rho, route) if drawing is None else Secret(drawing, calibrated(drawing, rho))
    try:
        proven = [certify(ledger, int(ledger.uses.owner.max(initial=0)) + 1) for ledger in ledgers]
    except AnechoicError as error:
        return asked, Check(name, False, str(error))
    if isinstance(asked, Secret):
        found = Secret(asked.drawing, min(certificate.noise for certificate in proven))
        least, limit = found.epsilon(DELTA), epsilon(rho, DELTA)
        check = Check(name, least <= limit * (1 + NEAR), f"ε = {least:.4g}, where {limit:.4g} was asked for")
        return Secret(asked.drawing, max(found.noise, asked.noise)), check
    spent = max(certificate.rho for certificate in proven)
    told = f"ρ = {spent:.4g}" + (f", where ρ = {rho:.4g} was asked for" if np.isfinite(rho) else "")
    return Gaussian(min(spent, rho), route), Check(name, spent <= rho * (1 + ROUNDING), told)


def law_of(rule: Algorithm, played: Played, releases: int, doubt: float) -> Check:
    """Hold the messages where there is no signal against what the ledger says of their noise."""
    told, multiples = played.ledgers[0].releases, played.ledgers[0].multiples
    if len(told.number) != releases:
        return Check(LAW, False, "the ledger does not have every release")
    messages: list[Vector] = list(played.silent.T)
    if rule.keeps is Keeps.NOISE:
        messages = unrolled(messages, told.parent.tolist(), [multiples[place] for place in told.taken])
    return check_law(np.array(messages, np.float64).T, told.sigma, doubt)


def apart(silent: Floats, together: int, doubt: float) -> Check:
    """Tell whether coordinates, and machines, have noise of their own: what no game should learn from another."""
    name = "no two coordinates or machines share their noise"
    lags = sorted({1, together})
    far = float(ndtri(1 - doubt / (2 * len(lags) * silent.shape[1])))
    for lag in lags:
        for place, noise in enumerate(silent.T):
            value = float(np.corrcoef(noise[lag:], noise[:-lag])[0, 1])
            if not abs(np.arctanh(np.clip(value, -ALIKE, ALIKE))) * math.sqrt(len(noise) - lag - 3) <= far:
                whose = "coordinates" if lag < together else "machines"
                return Check(
                    name, False, f"in release {place + 1}, the noise of two {whose} has correlation {value:.3f}"
                )
    return Check(name, True, "neighbouring coordinates and machines are uncorrelated")


class Failing(NoiseSource):
    """Noise whose second draw fails, as when a process is killed."""

    seeded = True

    def __init__(self, sound: NoiseSource) -> None:
        self.sound = sound
        self.draws = 0

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Fail, or draw."""
        self.draws += 1
        if self.draws == 2:
            raise Refused("the noise cannot be drawn now")
        return self.sound.draw(number, sigma, dimension)


def check_budget(target: Target, releases: int, seed: int) -> Check:
    """Ask machines with little budget for everything and once more, one draw of their noise failing on the way."""
    name, rule, told = "a budget is kept", target.rule(), []
    for share in (0.75, 1.0):
        budget, ledger = share * rule.allowance, Ledger(rule.setting.sampling)
        shard, noise = shard_of(rule, np.zeros(1, np.int64)), Failing(source(rule, seed, 0))
        machine = Machine(0, shard, rule, noise, ledger, Budget(budget), lots=Lots(seed, 0))
        refused = last = 0
        for place in range(releases + 1):
            try:
                last = machine.answer(next_query(None, place, rule.clip, rule.problem.dimension), last).number
            except Refused:
                refused += 1
        try:
            spent = certify(ledger, 1).rho
        except AnechoicError as error:
            return Check(name, False, str(error))
        told.append(f"ρ = {spent:.4g} of {budget:.4g} spent, {refused} of {releases + 1} questions refused")
        if spent > budget * (1 + ROUNDING):
            return Check(name, False, told[-1])
    return Check(name, True, "; ".join(told))
