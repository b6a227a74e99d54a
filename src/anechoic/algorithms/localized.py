"""Localisation: phases on ever smaller, disjoint parts of the data, each regularised around the last phase's result.

Phase k (k = 1, 2, …, ⌊log₂ n⌋, n being the smallest shard) uses n_k = ⌊n_i/2^k⌋ fresh records of machine i, the
regulariser λ_k/2 ‖w − w_{k−1}‖² with λ_k = 1/(η_k n_k) and η_k = η/4^k, and the ball of radius 2G/λ_k around w_{k−1}.
In every one of its R_k rounds each participant sends the mean gradient over *all* its n_k records: zCDP gains nothing
from drawing some of them at random with replacement, and the full batch moves least when a record is replaced.

Phases use disjoint records, so they compose in parallel. Within a phase a record is met whenever its machine is called;
a machine plans for a cap of calls, three deviations above the mean, and stops there, so that the noise is
σ² = (2G/n_k)² cap_k/ρ². The regulariser's gradient is public, and the server adds it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

from anechoic.algorithms.base import Algorithm, Floats, Ints, Segment
from anechoic.algorithms.setting import Setting
from anechoic.errors import BadInput
from anechoic.privacy.schedules import planned_cap
from anechoic.problems.domains import WithinBall
from anechoic.records import Vector


class Phase(NamedTuple):
    """The public constants of one phase."""

    records: int
    """n_k of the smallest shard."""
    rounds: int
    """R_k."""
    cap: int
    """How often a machine may be called in the phase."""
    strength: float
    """λ_k."""
    radius: float
    """2G/λ_k."""
    variance: float
    """E‖mean message − gradient‖²: the choice of participants, and the noise."""


class Localized(Algorithm):
    """Base of the localised algorithms; a subclass gives a phase's rounds and the method that minimises inside it."""

    def __init__(self, setting: Setting) -> None:
        if setting.schedule is not None:
            raise BadInput(f"{self.card.name} has a noise of its own for each phase: leave the schedule out")
        super().__init__(setting)

    def default_clip(self) -> float:
        """Return G."""
        return self.problem.lipschitz

    def default_step(self) -> float:
        """Return η = (D/G) √M min{1/√n, ρ/√d}, from which phase k has η_k = η/4^k."""
        setting = self.setting
        return (
            self.domain.diameter
            / self.problem.lipschitz
            * math.sqrt(setting.machines)
            * min(1 / math.sqrt(setting.records), setting.rho / math.sqrt(self.problem.dimension))
        )

    @abstractmethod
    def wanted_rounds(self, records: int, strength: float) -> float:
        """Return R_k before rounding, for n_k records and λ_k, where the number of rounds is not set."""

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """All phases."""
        setting, problem = self.setting, self.problem
        if setting.records < 2:
            raise BadInput(f"{self.card.name} needs at least 2 records a machine, not {setting.records}")
        sizes = [setting.records >> k for k in range(1, setting.records.bit_length())]
        strengths = [4**k / (self.step_size * size) for k, size in enumerate(sizes, start=1)]
        wanted = [self.wanted_rounds(*pair) for pair in zip(sizes, strengths, strict=True)]
        # Of lem:AVGBound: what remains of the machines' differences when m of M are chosen.
        chosen = (setting.machines - setting.participants) / max(1, setting.machines - 1)
        scale = 1.0 if setting.rounds is None else setting.rounds / sum(wanted)
        phases = []
        for size, strength, rounds in zip(sizes, strengths, wanted, strict=True):
            whole = max(1, math.ceil(scale * rounds - 1e-9))
            cap = planned_cap(whole, setting.rate)
            sigma = 2 * self.clip / size * math.sqrt(cap) / setting.rho
            divisor = setting.participants if self.noise_by == "machine" else setting.participants**2
            variance = chosen * problem.lipschitz**2 / setting.participants + problem.dimension * sigma**2 / divisor
            phases.append(Phase(size, whole, cap, strength, 2 * problem.lipschitz / strength, variance))
        return tuple(phases)

    def segments(self) -> tuple[Segment, ...]:
        """Return one segment a phase, with its cap."""
        return tuple(Segment(phase.rounds, phase.cap) for phase in self.phases)

    def capacity(self, sizes: Ints) -> None:
        """Return None: a phase reads its records again and again."""
        return

    # Actions of machine i; what it sends is the default: its mean gradient, under noise if the server is not trusted.

    def span(self, phase: int, size: Any, called: Any) -> tuple[Any, Any]:
        """Return all records of the phase: the ⌊size/2^k⌋ after those of the phases before (phases counted from 0)."""
        first = sum((size >> k for k in range(1, phase + 1)), start=0 * size)
        return first, first + (size >> phase + 1)

    def scale(self, phase: int, called: Ints, sensitivity: Floats) -> Floats:
        """Return σ = sensitivity · √cap_k / ρ."""
        return sensitivity * (math.sqrt(self.phases[phase].cap) / self.setting.rho)

    # Actions of the server.

    def within(self, phase: Phase, anchor: Vector, point: Vector) -> Vector:
        """Project onto K and the phase's ball around its anchor."""
        if phase.radius >= self.domain.diameter:
            return self.domain.project(point)
        return WithinBall(self.domain, anchor, phase.radius).project(point)
