"""The attacks by name, and in which forms a target suffers them."""

from __future__ import annotations

from collections.abc import Iterator

from threadpoolctl import threadpool_limits

from anechoic.algorithms import find
from anechoic.audit.distinguisher import Told, distinguish
from anechoic.audit.findings import Finding
from anechoic.audit.seat import distinguish_from_a_seat
from anechoic.audit.target import Effort, Target
from anechoic.errors import unknown

ATTACKS = ("distinguisher",)
"""What can be asked for."""


def carry_out(
    target: Target, effort: Effort, attack: str = "distinguisher", told: Told = lambda _: None
) -> Iterator[Finding]:
    """Carry out an attack in every form that suits the target; ``told`` is called with the number of runs so far."""
    if attack not in ATTACKS:
        raise unknown("attack", attack, ATTACKS)
    with threadpool_limits(limits=1, user_api="blas"):  # the matrices are small
        if find(target.algorithm).noise_by == "server":
            yield distinguish_from_a_seat(target, effort, told)
            return
        yield distinguish(target, effort, "straight", told)
        if target.rule().linked:
            yield distinguish(target, effort, "forked", told)
