"""The last bits of a message: those of floating-point noise give a record away, those of whole numbers say nothing.

An attack of Mironov's kind (2012). Floats are dense near 0 and sparse away from it. A record that moves a coordinate
by 1/64 leaves a message m = fl(1/64 + y); where m is small, y is near −1/64 and a multiple of 2⁻⁵⁹, and so then is m.
Noise alone, if it is as small, has finer bits. One coordinate that is small and no multiple of 2⁻⁵⁹ rules the record
out for sure, which no (ε, δ) with a tiny δ allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from anechoic.algorithms import Query
from anechoic.algorithms.noisy_sgd import NoisySgd
from anechoic.engines.machine import Machine
from anechoic.privacy import Budget, Ledger, NoiseSource, SeededGaussian
from anechoic.privacy.conversions import delta
from anechoic.privacy.staircase import Staircase
from anechoic.problems import Ball, BinaryLogistic, Term
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records, Vector

WIDTH, RELEASES, RHO = 1024, 25, 1.0
MOVED, FINEST = 1 / 64, 2.0**-59
STEPS = 5
"""How many steps of the grid the record moves each coordinate: an odd number, so that it would show in the last bit."""
FALSE_ALARM = 1e-6

RECORD = Records(np.full((1, WIDTH), 1 / 32), np.array([-1]))
NOBODY = Records(np.zeros((1, WIDTH)), np.array([-1]))


class Silent(NoiseSource):
    seeded = True

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


def message(records: Records, noise: NoiseSource, *, whole: bool) -> Vector:
    """Return what a machine with one record says of its gradient at 0: in steps of the grid, or as floats."""
    settings = {"run": "bits", "algorithm": "noisy-sgd", "machines": 1, "participants": 1, "rounds": 1}
    proposal = Proposal.of(settings | {"rho": RHO, "records": 1, "grid": MOVED / STEPS})
    rule = proposal.rule(BinaryLogistic(WIDTH, Ball(1.0), bound=1.0))
    if not whole:
        rule = NoisySgd(replace(rule.setting, grid=None))
    machine = Machine(0, records, rule, noise, Ledger(), Budget(RHO))
    return machine.answer(Query(1, (Term(1.0, np.zeros(WIDTH)),)), 0).message


def ruled_out(sent: Vector) -> bool:
    """Tell whether the last bits of a message of floats show that it is not the record's."""
    near = sent[np.abs(sent) < MOVED / 4]
    return bool(np.fmod(near, FINEST).any())


def test_the_last_bits_of_floats_rule_a_record_out_for_certain() -> None:
    sources = [SeededGaussian(seed, 0) for seed in range(RELEASES)]
    assert not any(ruled_out(message(RECORD, source, whole=False)) for source in sources)
    share = sum(ruled_out(message(NOBODY, source, whole=False)) for source in sources) / RELEASES
    # Under (ε, δ)-DP what never happens with one record happens with a probability of at most δ with another.
    assert share > 0.5
    assert delta(RHO, 10.0) < 1e-18


@pytest.mark.parametrize("records", [RECORD, NOBODY], ids=["the record", "another"])
def test_the_last_bits_of_whole_numbers_are_those_of_the_noise_alone(records: Records) -> None:
    # Pearson's test of the last four bits, seeded; over seeds it fails once in a million without a cause.
    sources = [Staircase(np.random.Generator(np.random.PCG64(seed)).bytes) for seed in range(RELEASES)]
    sent = np.concatenate([message(records, source, whole=True) for source in sources])
    np.testing.assert_array_equal(sent, np.rint(sent))
    counts = np.bincount(sent.astype(np.int64) & 15, minlength=16)
    expected = sent.size / 16
    assert float(((counts - expected) ** 2 / expected).sum()) < chi2.isf(FALSE_ALARM, 15)


def test_the_record_is_there_to_be_seen() -> None:
    """Without this the tests above could pass because it moves nothing."""
    np.testing.assert_array_equal(message(RECORD, Silent(), whole=False), np.full(WIDTH, MOVED))
    np.testing.assert_array_equal(message(RECORD, Silent(), whole=True), np.full(WIDTH, float(STEPS)))
    assert not message(NOBODY, Silent(), whole=True).any()
