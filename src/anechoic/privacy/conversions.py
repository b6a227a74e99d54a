"""Between ρ and what people ask for: (ε, δ), zCDP, Rényi orders and the scale of the noise.

Throughout, ``rho`` is the paper's ρ: the guarantee is ρ²/2-zCDP. When all noise is continuous Gaussian it is also
ρ-Gaussian-DP (μ = ρ), which is stronger; noise of whole numbers on a fine grid comes as near to that as makes no
difference. Which of these holds decides which :class:`Route` to (ε, δ) is allowed.

Every route is one function log δ(ρ, ε), increasing in ρ and decreasing in ε. All answers come from it, and all are
rounded to the side that promises less privacy, never more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, positive, whole

FINE = 256
"""How many steps of its grid the deviation of a federation's noise has at least; coarser noise is refused."""

SMOOTH = 3.0
"""How many steps of that deviation it takes to make whole numbers of a continuous Gaussian, with its law."""


class Route(StrEnum):
    """How ρ becomes (ε, δ); never more than the noise in use allows.

    ``EXACT`` needs continuous Gaussian noise in every release: δ(ε) = Φ(ρ/2 − ε/ρ) − e^ε Φ(−ρ/2 − ε/ρ), with equality
    (Balle & Wang 2018). ``WHOLE`` needs discrete Gaussian noise of at least :data:`FINE` steps: ``EXACT`` with ρ one
    part in 14,000 larger, or ``ZCDP`` where that is less (``docs/theory.md``, section 10). ``ZCDP`` holds for any
    ρ²/2-zCDP mechanism, discrete Gaussian noise on any grid included: δ(ε) = min over α > 1 of
    e^{(α−1)(αρ²/2 − ε)} (1 − 1/α)^α / (α − 1) (Canonne, Kamath & Steinke 2020, Prop. 12). ``PAPER`` is lem:dp_rdp,
    ε = ρ²/2 + ρ√(2 ln 1/δ): as general as ``ZCDP``, looser, there for comparison.

    >>> [f"{epsilon(4, 1e-5, route):.2f}" for route in Route]
    ['24.38', '24.38', '25.92', '27.19']
    """

    EXACT = "exact"
    WHOLE = "whole"
    ZCDP = "zcdp"
    PAPER = "paper"


def epsilon(rho: float, delta: float, route: Route | str = Route.EXACT) -> float:
    """Return the smallest ε for which the guarantee ``rho`` is (ε, δ)-DP along ``route``.

    Parameters
    ----------
    rho
        The guarantee ρ; 0 (nothing was released) gives 0, infinity gives infinity.
    delta
        The δ of (ε, δ)-DP, strictly between 0 and 1.
    route
        Which theorem to use, see :class:`Route`.

    Notes
    -----
    The result is an upper bound on the route's ε; for δ ≤ 1/2 it is at most 1e-12 · (ε + ρ) above it.

    >>> print(f"{epsilon(1, 1e-5):.3f}", f"{epsilon(1, 1e-5, 'zcdp'):.3f}", f"{epsilon(1, 1e-5, 'paper'):.3f}")
    4.377 4.728 5.299
    """
    return _epsilon(_rho(rho), math.log(_probability(delta)), _log_delta(route))


def delta(rho: float, epsilon: float, route: Route | str = Route.EXACT) -> float:
    """Return the smallest δ for which the guarantee ``rho`` is (ε, δ)-DP along ``route``.

    The result is an upper bound on the route's δ; it is 0 only when ρ is, however large ε.

    >>> print(f"{delta(1, 4.377):.2e}", f"{delta(1, 4.377, Route.ZCDP):.2e}", delta(0, 1))
    1.00e-05 4.47e-05 0.0
    """
    rho, log_delta = _rho(rho), _log_delta(route)
    epsilon = min(_at_least_zero("epsilon", epsilon), 1e18)
    if rho == 0:
        return 0.0
    return 1.0 if math.isinf(rho) else max(math.exp(log_delta(rho, epsilon)), math.ulp(0.0))


def best_guess(rho: float, route: Route | str = Route.EXACT) -> float:
    """Return how often anybody can be right at most who guesses which of two records is in the data.

    Before, each of the two was as likely as the other, so that 1/2 is no knowledge at all. Under ``EXACT`` it is
    Φ(ρ/2), and some guess is that good; under ``WHOLE`` hardly more. Otherwise it is a bound: the Kullback–Leibler
    divergence is at most ρ²/2, so the total variation distance is at most ρ/2 (Pinsker) and √(1 − e^(−ρ²/2))
    (Bretagnolle & Huber).

    >>> print(f"{best_guess(0.5):.4f}", f"{best_guess(0.5, 'zcdp'):.4f}", best_guess(0), best_guess(math.inf))
    0.5987 0.6250 0.5 1.0
    """
    rho = _rho(rho)
    if Route(route) in (Route.EXACT, Route.WHOLE):
        from scipy.special import ndtr

        return float(ndtr((rho if Route(route) is Route.EXACT else widened(rho)) / 2))
    return 0.5 + min(rho / 2, math.sqrt(-math.expm1(-rho * rho / 2))) / 2


def rho_for(epsilon: float, delta: float, route: Route | str = Route.EXACT) -> float:
    """Return the largest ρ that is (ε, δ)-DP along ``route``: the inverse of :func:`epsilon`, never above it.

    A mechanism that meets the returned ρ meets the (ε, δ) that was asked for, under the route's assumption.

    >>> print(f"{rho_for(1, 1e-5):.4f}", f"{rho_for(1, 1e-5, 'zcdp'):.4f}", f"{rho_for(1, 1e-5, 'paper'):.4f}")
    0.2681 0.2472 0.2041
    """
    epsilon, log_delta, target = positive("epsilon", epsilon), _log_delta(route), math.log(_probability(delta))
    if epsilon < 1e-90:
        return 0.0
    epsilon = min(epsilon, 1e18)
    least = 2 * epsilon / (math.sqrt(2 * (epsilon - target)) + math.sqrt(-2 * target))  # the paper's, met by all routes
    most = least
    while log_delta(most, epsilon) <= target:
        most *= 2
    share = least / most
    if share < 1:
        share = _solve(lambda share: log_delta(share * most, epsilon) - target, share, 1.0)
    return _settle(share * most, -1, lambda value: _epsilon(value, target, log_delta) <= epsilon)


def widened(rho: float, steps: float = FINE) -> float:
    """Return the ρ of continuous noise that whole-number noise of ``steps`` grid steps, of ``rho``, can be made of.

    >>> print(f"{widened(1):.6f}", f"{widened(1, 30):.6f}")
    1.000069 1.005038
    """
    return rho / math.sqrt(1 - (SMOOTH / steps) ** 2)


def zcdp(rho: float) -> float:
    """Return the zCDP parameter ρ²/2 of the guarantee ``rho``: the number that adds up under composition.

    >>> zcdp(4)
    8.0
    """
    return _rho(rho) ** 2 / 2


def rho_from_zcdp(parameter: float) -> float:
    """Return the ρ of a mechanism that is ``parameter``-zCDP: √(2 · parameter).

    >>> rho_from_zcdp(8)
    4.0
    """
    return math.sqrt(2 * _at_least_zero("the zCDP parameter", parameter))


def rdp(rho: float, order: float) -> float:
    """Return the Rényi divergence α·ρ²/2 that the guarantee ``rho`` allows at ``order`` α > 1.

    ρ²/2-zCDP is this bound at *every* order (Bun & Steinke 2016). There is no way back from a single order.

    >>> rdp(1, 8)
    4.0
    """
    if not order > 1:
        raise BadInput(f"order must be above 1, not {order!r}")
    return order * zcdp(rho)


def sigma_for_rho(rho: float, *, releases: int = 1, sensitivity: float = 1.0) -> float:
    """Return the σ at which a record that meets ``releases`` equal releases is protected by ρ: σ = Δ√releases/ρ.

    Each release adds N(0, σ²I) to something that one record moves by at most ``sensitivity`` in the 2-norm; each then
    costs Δ²/(2σ²) of zCDP, whatever the earlier ones were, and the costs add up to ρ²/2.

    >>> sigma_for_rho(0.5, releases=4, sensitivity=2)
    8.0
    """
    return positive("sensitivity", sensitivity) * math.sqrt(whole("releases", releases)) / positive("rho", rho)


def rho_of_sigma(sigma: float, *, releases: int = 1, sensitivity: float = 1.0) -> float:
    """Return the ρ spent on a record that meets ``releases`` releases with noise ``sigma``: ρ = Δ√releases/σ.

    The inverse of :func:`sigma_for_rho`, under the same assumptions.

    >>> rho_of_sigma(8, releases=4, sensitivity=2)
    0.5
    """
    return positive("sensitivity", sensitivity) * math.sqrt(whole("releases", releases)) / positive("sigma", sigma)


def calibrate(
    epsilon: float,
    delta: float,
    *,
    releases: int = 1,
    sensitivity: float = 1.0,
    route: Route | str = Route.EXACT,
) -> float:
    """Return the least σ at which ``releases`` equal Gaussian releases are together (ε, δ)-DP along ``route``.

    Assumes what :func:`sigma_for_rho` and the :class:`Route` do. Promises that
    ``epsilon(rho_of_sigma(σ, ...), delta, route)`` is at most ``epsilon``, and equal to it but for rounding.

    >>> print(f"{calibrate(1, 1e-5):.4f}", f"{calibrate(1, 1e-5, releases=100):.3f}")
    3.7306 37.306
    """
    sigma = sigma_for_rho(rho_for(epsilon, delta, route), releases=releases, sensitivity=sensitivity)
    log_delta, target = _log_delta(route), math.log(delta)

    def spent(sigma: float) -> float:
        return _epsilon(rho_of_sigma(sigma, releases=releases, sensitivity=sensitivity), target, log_delta)

    return _settle(sigma, 1, lambda sigma: spent(sigma) <= epsilon)


def _epsilon(rho: float, target: float, log_delta: Callable[[float, float], float]) -> float:
    """Return the least ε found to have log δ(ρ, ε) ≤ ``target``."""
    if math.isinf(rho):
        return math.inf
    if rho == 0 or log_delta(rho, 0.0) <= target:
        return 0.0
    most = rho * rho / 2 + rho * math.sqrt(-2 * target)  # the paper's, an upper bound on all routes
    share = _solve(lambda share: log_delta(rho, share * most) - target, 0.0, 1.0 + 2**-20)
    return _settle(share * most, 1, lambda value: log_delta(rho, value) <= target)


# The relative error allowed to an evaluation of log δ: far above what rounding does, far below what anybody needs.
_GUARD = 2**-46
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def _exact(rho: float, epsilon: float) -> float:
    """Return log δ of ρ-Gaussian-DP.

    With x = ε/ρ − ρ/2 and Mills' ratio R(u) = Φ(−u)/φ(u), δ = Φ(−x) − φ(x) R(x+ρ) = φ(x) (R(x) − R(x+ρ)), and
    −R′(u) = 1 − u R(u). The first form is accurate for x < 0, the second for x ≥ 0, and for a small ρ, where both
    subtract nearly equal numbers, the integral of −R′ is.
    """
    x = epsilon / rho - rho / 2
    if x > 100:
        return -x * x / 2
    log_density = -x * x / 2 - math.log(2 * math.pi) / 2
    if rho < 0.25:
        u = x + rho * (1 + _NODES) / 2
        return log_density + math.log(rho / 2 * float(_WEIGHTS @ (1 - u * _mills(u))))
    if x < 0:
        from scipy.special import ndtr

        return math.log(float(ndtr(-x)) - math.exp(log_density) * float(_mills(x + rho)))
    return log_density + math.log(float(_mills(x) - _mills(x + rho)))


def _zcdp(rho: float, epsilon: float) -> float:
    """Return log δ of ρ²/2-zCDP by Canonne, Kamath & Steinke, Prop. 12; any α gives a valid bound.

    The derivative in α vanishes where (α − ½)ρ² + ln(1 − 1/α) = ε. The left side increases from −∞ to ∞, so there is
    one such α, and it is the minimum. It is sought as u = ln(α − 1), with −ln(1 − 1/α) = ln(1 + e^−u).
    """

    def slope(u: float) -> float:
        return (math.exp(u) + 0.5) * rho * rho - float(np.logaddexp(0, -u)) - epsilon

    u = _solve(slope, -2 * rho * rho - 1, math.log(epsilon + 2) - 2 * math.log(rho) + 1)
    alpha = 1 + math.exp(u)
    return math.exp(u) * (alpha * rho * rho / 2 - epsilon) - alpha * float(np.logaddexp(0, -u)) - u


def _whole(rho: float, epsilon: float) -> float:
    """Return the lesser log δ of two theorems on discrete Gaussian noise that is fine.

    What the first neglects, a factor of less than 1 + 10⁻⁵⁰ on probabilities, is within the rounding of ``_GUARD`` for
    a ρ of 10⁻²⁰ or more, to which a lesser one is raised.
    """
    return min(_exact(widened(max(rho, 1e-20)), epsilon), _zcdp(rho, epsilon))


def _paper(rho: float, epsilon: float) -> float:
    """Return log δ by lem:dp_rdp, solved for δ: −(ε/ρ − ρ/2)²/2, and nothing below ε = ρ²/2."""
    x = max(epsilon / rho - rho / 2, 0.0)
    return -x * x / 2


def _log_delta(route: Route | str) -> Callable[[float, float], float]:
    """Return the route's log δ(ρ, ε), rounded up."""
    try:
        formula = {Route.EXACT: _exact, Route.WHOLE: _whole, Route.ZCDP: _zcdp, Route.PAPER: _paper}[Route(route)]
    except ValueError:
        raise BadInput(f"route must be one of {', '.join(Route)}, not {route!r}") from None

    def rounded_up(rho: float, epsilon: float) -> float:
        x = epsilon / rho - rho / 2
        return min(formula(rho, epsilon) + _GUARD * (1 + x * x + rho * abs(x)), 0.0)

    return rounded_up


def _mills(u: float | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Mills' ratio Φ(−u)/φ(u) = √(π/2)·erfcx(u/√2)."""
    from scipy.special import erfcx

    ratio: npt.NDArray[np.float64] = math.sqrt(math.pi / 2) * erfcx(u / math.sqrt(2))
    return ratio


def _solve(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))


def _settle(value: float, direction: int, holds: Callable[[float], bool]) -> float:
    """Move ``value`` up (1) or down (−1), first by roundings and then ever faster, until it ``holds``."""
    step = 2**-52
    while not holds(value):
        value *= 1 + direction * step
        step *= 2
    return value


def _rho(rho: float) -> float:
    """Return a usable ρ of at least 0: between 0 and 1e-100 it counts as 1e-100, above 1e9 as infinite."""
    if not isinstance(rho, int | float | np.integer | np.floating) or math.isnan(rho) or rho < 0:
        raise BadInput(f"rho must be a number of at least 0, not {rho!r}")
    if rho > 1e9:
        return math.inf
    return float(rho) and max(float(rho), 1e-100)


def _at_least_zero(name: str, value: float) -> float:
    return 0.0 if value == 0 else positive(name, value)


def _probability(delta: float) -> float:
    if not (isinstance(delta, float | np.floating) and 0 < delta < 1):
        raise BadInput(f"delta must be a number strictly between 0 and 1, not {delta!r}")
    return float(delta)
