"""The attacks by name, and in which forms a target suffers them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from threadpoolctl import threadpool_limits

from anechoic.algorithms import find
from anechoic.audit.canaries import find_canaries
from anechoic.audit.distinguisher import Told, distinguish
from anechoic.audit.findings import Finding
from anechoic.audit.membership import infer_membership
from anechoic.audit.seat import distinguish_from_a_seat
from anechoic.audit.target import Effort, Target
from anechoic.errors import unknown

ATTACKS = {"distinguisher": 60_000, "canaries": 4_000, "membership": 2_000}
"""What can be asked for, and how many runs that takes where nothing is said."""

ON_ONE_MACHINE = 200
"""Canaries on one machine, at most."""


def carry_out(
    target: Target, effort: Effort, attack: str = "distinguisher", told: Told = lambda _: None
) -> Iterator[Finding]:
    """Carry out an attack in every form that suits the target; ``told`` is called with the number of runs so far."""
    if attack not in ATTACKS:
        raise unknown("attack", attack, ATTACKS)
    with threadpool_limits(limits=1, user_api="blas"):  # the matrices are small
        if attack == "canaries":
            yield find_canaries(target, replace(effort, together=min(effort.runs, ON_ONE_MACHINE)), told)
        elif attack == "membership":
            yield from infer_membership(target, effort, told)
        elif find(target.algorithm).noise_by == "server":
            yield distinguish_from_a_seat(target, effort, told)
        else:
            yield distinguish(target, effort, "straight", told)
            if target.rule().linked:
                yield distinguish(target, effort, "forked", told)
