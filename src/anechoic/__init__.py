"""Private federated convex optimisation for when nobody is trusted and not everyone shows up."""

from anechoic.algorithms import ALGORITHMS, Algorithm
from anechoic.data import Dataset, digits, federate, from_arrays, mnist, synthetic_logistic
from anechoic.engines import Run, train
from anechoic.errors import AnechoicError, BadInput, Refused
from anechoic.federation import Federation
from anechoic.participation import Bernoulli, Cyclic, Given, Trace, Uniform
from anechoic.privacy import Certificate, Ledger, certify, epsilon, rho_for
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, Problem, SmoothedHinge, Softmax
from anechoic.records import Records

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "AnechoicError",
    "BadInput",
    "Ball",
    "Bernoulli",
    "BinaryLogistic",
    "Certificate",
    "Cyclic",
    "Dataset",
    "Federation",
    "Given",
    "Huber",
    "LeastSquares",
    "Ledger",
    "Problem",
    "Records",
    "Refused",
    "Run",
    "SmoothedHinge",
    "Softmax",
    "Trace",
    "Uniform",
    "certify",
    "digits",
    "epsilon",
    "federate",
    "from_arrays",
    "mnist",
    "rho_for",
    "synthetic_logistic",
    "train",
]
