"""Secret sampling: what a release reveals of a record if the machine alone knows whether it used it.

A machine answers K releases, each a sum of clipped contributions divided by a *fixed* number, plus Gaussian noise.
Which of its records enter which release it draws itself, without looking at them, and never tells. A scheme here says
how it draws, and turns the noise into (ε, δ) for **one record replaced** and a server that may choose every query in
view of all earlier releases:

- :class:`Poisson`: each release takes each record with probability q, all independently;
- :class:`Assigned`: each record goes to one of K releases, uniformly at random and independently of the other records;
- :class:`AssignedCorrelated`: the same under noise that is correlated over the machine's releases, by Monte Carlo.

Noise is given as σ/Δ, where Δ = 2C/B is how far a replaced record moves a release that uses it. ``docs/theory.md`` has
the proofs. What these figures are not is a ρ: secret sampling pays at the ε and δ that people ask for, not at high
Rényi orders, where no ρ below half of that without the secret holds. So what is quoted is an (ε, δ) curve; beside it
stands the ρ of :meth:`Scheme.rho`, which needs no secret.

All figures hold for continuous Gaussian noise only, and for records whose place nobody but their machine knows.
"""

from anechoic.privacy.sampling.assigned import Assigned
from anechoic.privacy.sampling.correlated import AssignedCorrelated
from anechoic.privacy.sampling.drawing import DELTA, Drawing, calibrated, named_drawing, read_drawing
from anechoic.privacy.sampling.poisson import Poisson
from anechoic.privacy.sampling.scheme import Scheme

__all__ = [
    "DELTA",
    "Assigned",
    "AssignedCorrelated",
    "Drawing",
    "Poisson",
    "Scheme",
    "calibrated",
    "named_drawing",
    "read_drawing",
]
