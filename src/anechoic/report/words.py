"""Names and numbers as a report prints them."""

from __future__ import annotations

import math
from datetime import datetime

ABSENT = "–"
PLAIN = (1e-3, 1e5)
"""From where and up to where numbers are written out."""

_NAMES = {"localized": "localised", "sgd": "SGD", "mu2": "μ²"}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def name(algorithm: str) -> str:
    """Return an algorithm's name in prose.

    >>> name("noise-cancelling"), name("noisy-sgd"), name("localized-minibatch"), name("mu2-sgd")
    ('noise cancelling', 'noisy SGD', 'localised minibatch', 'μ²-SGD')
    """
    words = [_NAMES.get(word, word) for word in algorithm.split("-")]
    return " ".join(words).replace("μ² SGD", "μ²-SGD")


def setting(rho: float | None, participants: int) -> str:
    """Return a setting of the paper's tables.

    >>> setting(8.0, 50)
    'ρ = 8, m = 50'
    """
    return f"m = {participants}" if rho is None else f"ρ = {rho:g}, m = {participants}"


def fixed(value: float | None, digits: int = 1) -> str:
    """Return a number with so many decimals, or a dash for one that is missing or not finite.

    >>> fixed(-3.14159), fixed(1234567, 0), fixed(None), fixed(float("nan"))
    ('−3.1', '1,234,567', '–', '–')
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    # Adding 0 after rounding turns −0.0 into 0.0.
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def significant(value: float | None, digits: int = 3, *, plain: tuple[float, float] = PLAIN) -> str:
    """Return a number with so many significant digits, with a power of ten where it is not of a ``plain`` size.

    >>> significant(0.012345), significant(1234.5), significant(2.5e-7), significant(1e6), significant(-1e-4)
    ('0.0123', '1,230', '2.5×10⁻⁷', '10⁶', '−10⁻⁴')
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0:
        return "0"
    if plain[0] <= abs(rounded) < plain[1]:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        shown = f"{rounded:,.{decimals}f}"
        return (shown.rstrip("0").rstrip(".") if decimals else shown).replace("-", "−")
    head, power = f"{rounded:e}".split("e")
    head = head.rstrip("0").rstrip(".")
    ten = "10" + str(int(power)).translate(_SUPERSCRIPT)
    return (ten if head.lstrip("-") == "1" else f"{head.lstrip('-')}×{ten}").join(("−" if value < 0 else "", ""))


def spread(mean: float | None, sd: float | None, digits: int = 1) -> str:
    """Return a mean and its standard deviation, where there is one.

    >>> spread(51.49, 7.63), spread(51.49, None)
    ('51.5 ± 7.6', '51.5')
    """
    return fixed(mean, digits) if sd is None else f"{fixed(mean, digits)} ± {fixed(sd, digits)}"


def probability(value: float | None) -> str:
    """Return a p-value.

    >>> probability(0.0213), probability(1e-9)
    ('0.021', '< 0.001')
    """
    return "< 0.001" if value is not None and value < 0.001 else fixed(value, 3)


def moment(iso: str) -> str:
    """Return a moment as a reader says it; what is no moment is returned as it is.

    >>> moment("2026-07-01T12:34:56Z"), moment("2026-07-01"), moment("yesterday")
    ('1 July 2026, 12:34 UTC', '1 July 2026', 'yesterday')
    """
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    day = f"{when.day} {when:%B %Y}"
    return f"{day}, {when:%H:%M %Z}".rstrip() if "T" in iso else day


def sentence(words: str) -> str:
    """Return words as a sentence, with a capital and a full stop.

    >>> sentence("it minimises the bound"), sentence("As it is.")
    ('It minimises the bound.', 'As it is.')
    """
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def listed(items: list[str]) -> str:
    """Return items as a list in prose.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
