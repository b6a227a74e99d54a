"""Privacy: how much noise, from where, what was released, and what that proves."""

from anechoic.privacy.budget import Budget
from anechoic.privacy.certificate import Certificate, certify
from anechoic.privacy.conversions import Route, calibrate, delta, epsilon, rho_for
from anechoic.privacy.events import events
from anechoic.privacy.ledger import NO_PARENT, Ledger, Release, Use
from anechoic.privacy.noise import NoiseSource, SeededGaussian
from anechoic.privacy.schedules import CappedConstant, OneRelease, PaperSchedule, Schedule, Weighted, planned_cap

__all__ = [
    "NO_PARENT",
    "Budget",
    "CappedConstant",
    "Certificate",
    "Ledger",
    "NoiseSource",
    "OneRelease",
    "PaperSchedule",
    "Release",
    "Route",
    "Schedule",
    "SeededGaussian",
    "Use",
    "Weighted",
    "calibrate",
    "certify",
    "delta",
    "epsilon",
    "events",
    "planned_cap",
    "rho_for",
]
