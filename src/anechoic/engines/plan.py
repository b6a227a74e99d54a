"""What a run will use and release, known before it begins: participation, records and noise depend on no gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Floats, Ints
from anechoic.errors import Refused
from anechoic.federation import Federation
from anechoic.participation import Trace
from anechoic.privacy.budget import ROUNDING
from anechoic.privacy.certificate import Certificate, certify
from anechoic.privacy.ledger import CANCELS, NO_PARENT, Ledger, Releases, Uses
from anechoic.privacy.noise import SERVER


class Entries(NamedTuple):
    """What each entry of the trace uses and how much noise it carries, known before the run."""

    phase: Ints
    first: Ints
    stop: Ints
    sensitivity: Floats
    sigma: Floats


@dataclass(frozen=True, eq=False)
class Plan:
    """Who takes part when, what each participation uses and adds, the ledger of it all, and what that ledger proves."""

    trace: Trace
    entries: Entries
    ledger: Ledger
    certificate: Certificate

    @classmethod
    def of(cls, algorithm: Algorithm, federation: Federation, trace: Trace) -> Plan:
        """Plan a run, and refuse one in which a machine would run dry or that would spend more than was asked for."""
        entries = uses(algorithm, federation, trace)
        ledger = write(algorithm, trace, entries)
        certificate = certify(ledger, trace.machines)
        if certificate.rho > algorithm.allowance * (1 + ROUNDING):
            raise Refused(f"the run would spend ρ = {certificate.rho:.4g} of a budget of ρ = {algorithm.allowance:.4g}")
        return cls(trace, entries, ledger, certificate)


def uses(algorithm: Algorithm, federation: Federation, trace: Trace) -> Entries:
    """Return what every entry of the trace will use, or refuse a trace under which a machine runs dry."""
    rounds = np.array([segment.rounds for segment in algorithm.segments()])
    phase_of_round = np.repeat(np.arange(len(rounds)), rounds)
    phase, sizes = phase_of_round[trace.round_of], federation.sizes[trace.who]
    first, stop = np.empty_like(phase), np.empty_like(phase)
    sensitivity, sigma = np.empty(len(phase)), np.zeros(len(phase))
    for index in range(len(rounds)):
        here = np.flatnonzero(phase == index)
        first[here], stop[here] = algorithm.span(index, sizes[here], trace.number[here])
        sensitivity[here] = algorithm.sensitivity(stop[here] - first[here])
        if algorithm.noise_by == "machine":
            sigma[here] = algorithm.scale(index, trace.number[here], sensitivity[here])
    if (stop > sizes).any():
        first_dry = int(np.argmax(stop > sizes))
        raise Refused(
            f"machine {trace.who[first_dry]} would run dry in round {trace.round_of[first_dry] + 1}: "
            f"it holds {sizes[first_dry]} records and record {stop[first_dry]} would be used; "
            "take fewer rounds, or let others take its place (when_dry: replace)"
        )
    return Entries(phase, first, stop, sensitivity, sigma)


def write(algorithm: Algorithm, trace: Trace, entries: Entries) -> Ledger:
    """Return the ledger of the whole run."""
    ledger = Ledger(algorithm.setting.sampling)
    multiples = [CANCELS]
    if algorithm.noise_by == "server":
        numbers = np.arange(1, trace.rounds + 1)
        participants = algorithm.setting.participants
        phases = [(index, segment.rounds) for index, segment in enumerate(algorithm.segments())]
        largest = [np.full(rounds, algorithm.largest_sensitivity(phase) / participants) for phase, rounds in phases]
        ends = np.cumsum([rounds for _, rounds in phases])[:-1]
        scales = map(algorithm.scale, range(len(phases)), np.split(numbers, ends), largest)
        sigma = np.concatenate(list(scales))
        parents = numbers - 1 if algorithm.linked else np.full(trace.rounds, NO_PARENT)
        taken, rounding = np.zeros(trace.rounds, np.int64), np.zeros(trace.rounds)
        releases = Releases(np.full(trace.rounds, SERVER), numbers, parents, numbers, sigma, taken, rounding)
        uses = Uses(trace.round_of, trace.who, entries.first, entries.stop, entries.sensitivity / participants)
    else:
        ancestors = trace.number - 1 if algorithm.linked else np.zeros_like(trace.number)
        multiples = [algorithm.taken(count) for count in range(int(ancestors.max(initial=0)) + 1)]
        rounding = np.array([algorithm.rounding(taken) for taken in multiples])[ancestors]
        releases = Releases(trace.who, trace.number, ancestors, trace.round_of + 1, entries.sigma, ancestors, rounding)
        uses = Uses(np.arange(len(trace.who)), trace.who, entries.first, entries.stop, entries.sensitivity)
    ledger.extend(releases, uses, multiples)
    return ledger
