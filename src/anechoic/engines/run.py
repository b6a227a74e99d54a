"""One run: a problem, a federation and an algorithm, under one guarantee."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from anechoic.algorithms import Algorithm, Setting, find
from anechoic.algorithms.base import State
from anechoic.engines.collective import run_collective, supports
from anechoic.engines.machines import run_machines
from anechoic.engines.plan import Plan
from anechoic.errors import BadInput, unknown, whole
from anechoic.federation import Federation
from anechoic.participation import Given, Participation, Trace, Uniform
from anechoic.privacy.certificate import Certificate, certify
from anechoic.privacy.ledger import Ledger
from anechoic.privacy.noise import ORDER, generator
from anechoic.privacy.schedules import Schedule, named_schedule
from anechoic.privacy.strategies import Strategy, find_strategy
from anechoic.problems.base import Problem
from anechoic.records import Records, Vector

Engine = Literal["auto", "collective", "machines"]

Begun = Callable[[Trace, Ledger], None]
"""Told, before the first round, who takes part when and what the ledger will be."""


@dataclass(frozen=True, eq=False)
class Run:
    """What came of a run.

    Attributes
    ----------
    model : array
        The output of the algorithm.
    ledger : Ledger
        Every release.
    certificate : Certificate
        What the ledger proves, computed from it and from nothing else.
    engine : str
        Which engine ran: 'collective' or 'machines'.
    seconds : float
        How long the rounds took.
    """

    model: Vector
    algorithm: Algorithm
    state: State
    trace: Trace
    ledger: Ledger
    certificate: Certificate
    engine: str
    seed: int
    seconds: float

    @property
    def slack(self) -> float:
        """What share of the ρ that was allowed remains unspent by the worst-off machine (0: met exactly)."""
        return 1 - self.certificate.rho / self.algorithm.allowance if self.algorithm.noise_by else 0.0

    @property
    def gradients(self) -> int:
        """How many gradients of single records were computed."""
        algorithm = self.algorithm
        each = len(algorithm.contribution(algorithm.query(self.state), algorithm.blank()))
        return each * self.ledger.records_read

    def accuracy(self, records: Records) -> float | None:
        """Return the share of records that the model predicts rightly, None where the problem does not classify."""
        return self.algorithm.problem.accuracy(self.model, records)

    def loss(self, records: Records) -> float:
        """Return the mean loss of the model."""
        return self.algorithm.problem.loss(self.model, records)


def train(
    problem: Problem,
    federation: Federation,
    algorithm: str | type[Algorithm] = "noise-cancelling",
    *,
    participants: int | Participation,
    rounds: int | None = None,
    rho: float | None = None,
    batch: int = 1,
    clip: float | None = None,
    step: float | None = None,
    schedule: Schedule | str | None = None,
    seed: int = 0,
    engine: Engine = "auto",
    when_dry: Literal["refuse", "replace"] = "refuse",
    start: Vector | None = None,
    grid: float | None = None,
    strategy: Strategy | str | None = None,
    momentum: float | None = None,
    whole_shards: bool = False,
    releases: int | None = None,
    pooled: bool = False,
    sampling: str = ORDER,
    observe: Callable[[int, Vector], None] | None = None,
    begun: Begun | None = None,
) -> Run:
    """Simulate one training run and return the model with its ledger and certificate.

    Parameters
    ----------
    problem, federation
        What to minimise, and who holds which records.
    algorithm : str or type
        A name from ``anechoic algorithms``, or an :class:`Algorithm` of your own.
    participants : int or Participation
        How many machines, drawn uniformly, take part in a round; or a rule of its own.
    rounds : int, optional
        T. By default as many as the smallest shard allows (the phases' own number for the localised algorithms).
    rho : float, optional
        The guarantee ρ²/2-zCDP for every record; None for the algorithms without privacy. ``anechoic.rho_for(epsilon,
        delta)`` returns the ρ of an ε. With ``sampling`` it stands for an ε instead: the one that ρ-GDP has at
        δ = 1e-5.
    batch : int
        b, how many fresh records a machine uses in a round.
    clip, step
        Override the algorithm's own formulas. Clipping always acts; the default bound is the one theory gives.
    schedule : Schedule or str, optional
        How noise grows with a machine's releases: 'paper', 'capped', 'one-release', or one of your own; by default the
        algorithm's.
    seed : int
        Participation and noise are a function of it. A seeded run can be repeated, so it is a simulation. It repeats
        to the bit: linear algebra runs on one thread, so that no sum depends on how many cores were free.
    engine : {'auto', 'collective', 'machines'}
        'collective' is the fast one, exact in law; 'machines' runs every machine. 'auto' takes the fast one if it can.
    when_dry : {'refuse', 'replace'}
        Whether a participation that would exhaust a machine's records is refused, or others are drawn in its place.
    start : array, optional
        x_0, by default the domain's middle.
    grid : float, optional
        γ: messages are rounded to whole multiples of it and noise is whole, as in a real federation.
    strategy : Strategy or str, optional
        How the noise of a machine's messages hangs together: 'independent', 'cancelling', 'square-root', 'banded:W',
        'optimised', or one of your own; by default the algorithm's.
    momentum : float, optional
        β of 'momentum-sgd'.
    whole_shards : bool
        Whether every release uses all records of its machine, again and again, instead of ``batch`` fresh ones.
    releases : int, optional
        How often a machine is called at most; others are drawn in the place of one that was.
    pooled : bool
        Whether every record counts the same although shards differ in size; see :class:`~anechoic.algorithms.Setting`.
    sampling : str
        'order', or how each machine of 'momentum-sgd' or 'noisy-sgd' draws its records in secret: 'poisson' (each
        release takes each record with probability 1/``releases``) or 'assigned' (each record is drawn one of the
        ``releases``); 'poisson:3' and 'assigned:3' for three uses of a record. The certificate's ε then counts on
        nobody knowing what was drawn, its ρ does not.
    observe : callable, optional
        Called after each round with the number of rounds done and the current model.
    begun : callable, optional
        Called before the first round with who takes part when and the ledger that the run will write: all that is
        released, and when, is public and known beforehand.

    Returns
    -------
    Run
        For a private algorithm its certificate is at most ``rho``, but for rounding: every contribution is clipped, and
        a run that would spend more is refused before it begins, whatever the records hold.

    Raises
    ------
    BadInput
        A setting does not fit. Nothing was released.
    Refused
        A machine would run dry, or the run would spend more than ``rho``. Nothing was released.

    Examples
    --------
    >>> from anechoic.data import synthetic_logistic
    >>> from anechoic.problems import Ball, BinaryLogistic
    >>> population = synthetic_logistic(4, 20, 5, heterogeneity=0.5, seed=1)
    >>> shards = population.sample(np.random.default_rng(1), 80)
    >>> problem = BinaryLogistic(5, Ball(2.0), bound=population.bound)
    >>> run = train(problem, Federation.of_shards(shards), participants=2, rounds=40, rho=1.0, seed=1)
    >>> run.model.shape, len(run.ledger), 0 < run.certificate.rho <= 1.0
    ((5,), 80, True)
    """
    chosen = find(algorithm) if isinstance(algorithm, str) else algorithm
    problem.check_records(federation.pool)
    machines = federation.machines
    participation = participants if isinstance(participants, Participation) else Uniform(machines, participants)
    if participation.machines != machines:
        raise BadInput(f"the participation is for {participation.machines} machines, the federation has {machines}")
    seed = whole("the seed", seed, least=0)
    drawing = None
    if sampling != ORDER:
        from anechoic.privacy.sampling import named_drawing  # here, for a machine in a federation needs none of it

        drawing = named_drawing(sampling, releases)
    mixed = find_strategy(strategy) if isinstance(strategy, str) else strategy

    def build(rounds: int | None) -> Algorithm:
        smallest, asked = int(federation.sizes.min()), math.inf if rho is None else rho
        who = participation.participants
        rate = participation.participants / machines
        timed = named_schedule(schedule, rounds, rate) if isinstance(schedule, str) else schedule
        own = clip, step, timed, grid, mixed, momentum, whole_shards, releases, pooled, drawing
        return chosen(Setting(problem, machines, who, rounds, smallest, batch, asked, *own))

    if when_dry not in ("refuse", "replace"):
        raise unknown("rule for machines that run dry", when_dry, ("refuse", "replace"))
    rule = build(1 if rounds is None else rounds)
    if rounds is None:
        repeats = rule.capacity(federation.sizes) is None
        rule = build(None if repeats else affordable_rounds(participation, int(federation.sizes.min()) // batch))
    trace = draw_trace(rule, federation, participation, seed, when_dry)
    plan = Plan.of(rule, federation, trace)
    point = problem.domain.start(problem.dimension) if start is None else np.asarray(start, dtype=np.float64)
    if point.shape != (problem.dimension,) or not np.isfinite(point).all():
        raise BadInput(f"the starting point must be {problem.dimension} finite numbers")
    point = problem.domain.project(point)
    name = ("collective" if supports(rule) else "machines") if engine == "auto" else engine
    if name not in ("collective", "machines"):
        raise unknown("engine", name, get_args(Engine))
    if rule.capacity(federation.sizes) is None:
        federation = federation.arranged()

    def watch(done: int, state: State) -> None:
        if observe is not None:
            observe(done, rule.output(state))

    if begun is not None:
        begun(trace, plan.ledger)
    ledger, certificate = plan.ledger, plan.certificate
    with threadpool_limits(1, user_api="blas"):
        began = time.perf_counter()
        if name == "collective":
            state = run_collective(rule, federation, plan, point, seed, watch)
        else:
            state, ledger = run_machines(rule, federation, trace, point, seed, watch)
            certificate = certify(ledger, machines)
        seconds = time.perf_counter() - began
    return Run(np.asarray(rule.output(state)), rule, state, trace, ledger, certificate, name, seed, seconds)


def draw_trace(
    algorithm: Algorithm, federation: Federation, participation: Participation, seed: int, when_dry: str
) -> Trace:
    """Return who takes part when; no machine is called more often than its cap allows."""
    rng = generator(seed, "participation")
    capacity = algorithm.capacity(federation.sizes) if when_dry == "replace" else None
    parts, done = [], 0
    for segment in algorithm.segments():
        limits = capacity
        if segment.cap is not None and segment.cap < segment.rounds:
            caps = np.full(federation.machines, segment.cap)
            limits = caps if limits is None else np.minimum(caps, limits)
        whom = participation
        if isinstance(participation, Given):
            whom = participation.after(done)
        parts.append(whom.trace(segment.rounds, rng, limits))
        done += segment.rounds
    return Trace.joined(parts)


def affordable_rounds(participation: Participation, calls: int) -> int:
    """Return the most rounds in which no machine is called over ``calls`` times, but for one chance in a million."""
    if isinstance(participation, Given):
        return participation.known.rounds
    rate = participation.participants / participation.machines
    if calls < 1:
        raise BadInput("a shard holds fewer records than a local batch takes")
    if rate == 1:
        return calls
    spread = -NormalDist().inv_cdf(1e-6 / participation.machines) * math.sqrt(1 - rate)
    # √(pT) solves x² + spread·x = calls.
    root = (-spread + math.sqrt(spread**2 + 4 * calls)) / 2
    rounds = math.floor(root**2 / rate)
    return max(rounds, calls)
