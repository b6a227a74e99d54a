"""The law of the noise that the server sees, against what the machines of the reference engine really send."""

from __future__ import annotations

import numpy as np
import pytest
from tests.privacy.transcripts import Basis, Silence, Stage

from anechoic.engines.law import covariance
from anechoic.privacy.ledger import Floats

SEEDS = range(4)
LINKED = {"noise-cancelling": True, "fresh-noise": False, "noisy-sgd": False, "full-participation": False}


def covariance_of_what_is_sent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Floats:
    """Return Cov(U_s, U_t) of one coordinate of Σ_{i∈M_t} (noise in machine i's message of round t)."""
    loud, silent = stage.run(monkeypatch, Basis), stage.run(monkeypatch, Silence)
    assert stage.trace is not None
    total = np.zeros((stage.trace.rounds, stage.trace.rounds))
    for machine in range(stage.machines):
        rounds = stage.trace.round_of[stage.trace.who == machine]
        carried = np.array(loud.messages[machine]) - np.array(silent.messages[machine])
        total[np.ix_(rounds, rounds)] += carried @ carried.T
    return total


def dense(bands: Floats) -> Floats:
    full = np.diag(bands[0])
    for gap in range(1, len(bands)):
        below = np.diag(bands[gap, : len(full) - gap], -gap)
        full += below + below.T
    return full


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LINKED)
def test_the_covariance_is_that_of_the_messages(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(name, seed)
    seen = covariance_of_what_is_sent(stage, monkeypatch)
    assert stage.trace is not None
    sigma = stage.run(monkeypatch, Basis).ledger.releases.sigma  # in the order of the trace's entries
    law = dense(covariance(stage.trace, sigma**2, cancelling=LINKED[name]))
    np.testing.assert_allclose(law, seen, rtol=1e-9, atol=1e-9 * seen.max())
    if LINKED[name]:
        assert (seen < 0).any()
