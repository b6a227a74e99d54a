"""Drawing records in secret, as settings and ledgers speak of it."""

from __future__ import annotations

from functools import lru_cache

from anechoic.errors import BadInput, unknown
from anechoic.privacy import conversions
from anechoic.privacy.noise import ORDER
from anechoic.privacy.sampling.assigned import Assigned
from anechoic.privacy.sampling.poisson import Poisson

Drawing = Poisson | Assigned
"""How a machine can draw records: the schemes for independent noise."""

DELTA = 1e-5
"""The δ at which noise is fitted to what is asked for."""

_LAWS = ("poisson", "assigned")


def named_drawing(name: str, releases: int | None) -> Drawing | None:
    """Return the scheme that settings call by that name, for so many releases of a machine; None for 'order'.

    'poisson' and 'assigned' use a record once, on average or exactly; 'poisson:3' and 'assigned:3' three times.

    >>> named_drawing("poisson:3", 12), named_drawing("assigned", 12), named_drawing("order", None)
    (Poisson(rate=0.25, releases=12), Assigned(releases=12, passes=1), None)
    """
    if name == ORDER:
        return None
    law, _, told = name.partition(":")
    if law not in _LAWS:
        raise unknown("sampling", name, (ORDER, *_LAWS, "poisson:PASSES", "assigned:PASSES"))
    if releases is None:
        raise BadInput("what secret sampling reveals depends on how often a machine releases: say releases")
    passes = int(told) if told.isdecimal() else 1 if name == law else 0
    if not 0 < passes <= releases:
        raise BadInput(f"sampling {name!r} must name a number of passes from 1 to the {releases} releases")
    if law == "poisson":
        return Poisson(passes / releases, releases)
    if releases % passes:
        raise BadInput(f"{releases} releases are not {passes} passes of equally many")
    return Assigned(releases // passes, passes)


def read_drawing(text: str) -> Drawing | None:
    """Return the scheme that was written down as text, None for nothing; raise ValueError for anything else.

    >>> read_drawing(str(Poisson(1 / 3, 12))), read_drawing(str(Assigned(6, 2))), read_drawing("")
    (Poisson(rate=0.3333333333333333, releases=12), Assigned(releases=6, passes=2), None)
    """
    match text.split():
        case []:
            return None
        case ["poisson", rate, releases]:
            return Poisson(float(rate), int(releases))
        case ["assigned", releases, passes]:
            return Assigned(int(releases), int(passes))
    raise ValueError(f"there is no way to draw records {text!r}")


@lru_cache(maxsize=256)
def calibrated(drawing: Drawing, rho: float) -> float:
    """Return the σ/Δ at which all releases have the ε that ρ-GDP has, both at δ = 1e-5.

    >>> f"{calibrated(Poisson(1 / 8, 8), 0.25):.2f}"
    '1.44'
    """
    return drawing.calibrate(conversions.epsilon(rho, DELTA), DELTA)
