"""Problems: convex losses with their constants, over compact convex domains with their projections."""

from anechoic.problems.base import Problem, Term
from anechoic.problems.domains import Ball, Box, Domain, Product, Simplex, WithinBall
from anechoic.problems.linear import BinaryLogistic, Huber, LeastSquares, LinearModel, SmoothedHinge, Softmax

__all__ = [
    "Ball",
    "BinaryLogistic",
    "Box",
    "Domain",
    "Huber",
    "LeastSquares",
    "LinearModel",
    "Problem",
    "Product",
    "Simplex",
    "SmoothedHinge",
    "Softmax",
    "Term",
    "WithinBall",
]
