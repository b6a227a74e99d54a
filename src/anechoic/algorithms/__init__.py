"""The algorithms: one file each. A new one is a new file and one line in :data:`ALGORITHMS`."""

from __future__ import annotations

from anechoic.algorithms.anytime_sgd import AnytimeSgd
from anechoic.algorithms.base import Algorithm, Card, Keeps, Query, Segment
from anechoic.algorithms.delayed_updates import DelayedUpdates
from anechoic.algorithms.fresh_noise import FreshNoise
from anechoic.algorithms.full_participation import FullParticipation, FullParticipationTrusted
from anechoic.algorithms.localized_accelerated import LocalizedAccelerated
from anechoic.algorithms.localized_minibatch import LocalizedMinibatch, LocalizedMinibatchTrusted
from anechoic.algorithms.momentum_sgd import MomentumSgd
from anechoic.algorithms.mu2_sgd import Mu2Sgd
from anechoic.algorithms.noise_cancelling import NoiseCancelling
from anechoic.algorithms.noisy_sgd import NoisySgd
from anechoic.algorithms.setting import Setting
from anechoic.algorithms.sgd import Sgd
from anechoic.algorithms.storm import Storm
from anechoic.algorithms.trusted_server import TrustedServer
from anechoic.errors import unknown

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.card.name: algorithm
    for algorithm in (
        NoiseCancelling,
        TrustedServer,
        FullParticipation,
        FullParticipationTrusted,
        DelayedUpdates,
        FreshNoise,
        NoisySgd,
        MomentumSgd,
        LocalizedMinibatch,
        LocalizedMinibatchTrusted,
        LocalizedAccelerated,
        Mu2Sgd,
        AnytimeSgd,
        Storm,
        Sgd,
    )
}
"""Every algorithm by its name, in the order of the product's table."""


def find(name: str) -> type[Algorithm]:
    """Return the algorithm of that name, or say which name is nearest.

    >>> find("noise-canceling")
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no algorithm 'noise-canceling'; did you mean 'noise-cancelling'? There are: ...
    """
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


__all__ = ["ALGORITHMS", "Algorithm", "Card", "Keeps", "Query", "Segment", "Setting", "find"]
