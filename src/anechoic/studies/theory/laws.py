"""What is known exactly of a run on the linear problem: its course without noise, and the size of the noise."""

from __future__ import annotations

import math

import numpy as np

from anechoic.privacy.ledger import Floats
from anechoic.studies.theory.instance import Setup


def excess_without_noise(setup: Setup, step: float) -> Floats:
    """Return, for each slope, the excess loss at this step size if nothing is random.

    Then q_t = t·g, so w_t = −min(h, η|g|t(t − 1)/2), and x_T is the mean of the w_t with weights t.
    """
    t = np.arange(1, setup.rounds + 1)
    slopes = setup.gradient[:: setup.copies, None]
    travelled = np.minimum(setup.edge, step * slopes * (t * (t - 1) / 2))
    mean = travelled @ (2 * t / (setup.rounds * (setup.rounds + 1)))
    excess: Floats = setup.dimension * slopes[:, 0] * (setup.edge - mean)
    return excess


def predicted_noise(algorithm: str, setup: Setup, times: tuple[int, ...]) -> Floats:
    """Return what :func:`anechoic.studies.theory.measures.noise_paths` has for its expectation.

    Fresh noise: Var Y_t = t·σ²/m, increments independent. Noise cancelling: a machine keeps its noise from one round to
    the next with probability 1 − m/M, so that Cov(Y_s, Y_t) = (1 − m/M)^(t − s)·Var Y_s; and Var Y_t is M/m² times the
    mean variance of what a machine holds: κ·E[N_t] = κ·tm/M with κ = 4S²(1 + ln T)/ρ² in the paper's schedule, hence
    κt/m; with a constant σ², Mσ²/m² once every machine has been called, which it has with probability 1 − (1 − m/M)^t.
    """
    c = setup.constants
    t, unit = np.arange(1, setup.rounds + 1), (2 * c.sensitivity / c.rho) ** 2
    kept = 1 - c.participants / c.machines
    if algorithm == "fresh-noise":
        kept, variance = 1.0, unit * t / c.participants
    elif setup.constant:
        variance = unit * c.rounds * (1 - kept**t) * c.machines / c.participants**2
    else:
        variance = unit * (1 + math.log(c.rounds)) * t / c.participants
    covariance = kept ** np.abs(t[:, None] - t) * np.minimum(variance[:, None], variance)
    total = np.tril(2 * covariance - np.diag(variance)).sum(axis=1).cumsum()
    rows: Floats = np.stack([variance, total])[:, np.array(times) - 1]
    return rows
