"""What the theory promises: excess losses, step sizes and lower bounds for given constants.

Every upper bound here is about μ²-SGD with weights α_t = t, one fresh sample a machine a round and the output x_T. It
holds in expectation over samples, participation and noise, if every f_i(·; z) is convex, G-Lipschitz on K, and L-smooth
not only on K but within 2G/L of it (a loss that is smooth everywhere, such as the logistic one, qualifies), if the
samples of a machine are independent and identically distributed, and if each round's participants are drawn uniformly
and independently of everything before.

How the proofs go. Write q̃_t = α_t∇f(x_t) + ε_t + Y_t: the gradient, the sampling error and the noise that the server
sees. Then for every t, with α_{1:t} = t(t+1)/2, R_t the excess loss and w_{t+1} = Π(w_t − ηq̃_t),

    α_{1:t} R_t ≤ D²/(2η) + t·D·G* + Σ_{τ≤t} E⟨ε_τ + Y_τ, x* − w_{τ+1}⟩
                  + Σ_{τ≤t} E[τ⟨∇f(x_τ) − ∇f(x*), w_τ − w_{τ+1}⟩ − ‖w_τ − w_{τ+1}‖²/(2η)].

The sampling error costs at most D·√(E‖ε_τ‖²) ≤ D·√(vτ/m) a round, v = σ̃² + ξ̃². The last line is at most
2c·ηL Σ_{τ≤t} α_{1:τ} R_τ, with c = 1 where it may use the whole −‖w_τ − w_{τ+1}‖²/(2η) and c = 2 where half of it
pays for noise. If η ≤ 1/(4cLT), that sum is at most half the average of the left sides up to T, and whatever is left
over counts twice (lem:sum). Noise is paid for by one identity, which all rows share:

    If E[Y_{t+1} | rounds 1..t] = a·Y_t and E[Y_1] = 0, then, with H_r = 1 + a + ... + a^{t−r},
    Σ_{τ≤t} E⟨Y_τ, x* − w_{τ+1}⟩ = Σ_{r≤t} H_r E⟨Y_r, w_r − w_{r+1}⟩.

Indeed Y_r = V_r − E[V_{r+1} | rounds 1..r] for V_r = H_r Y_r and V_{t+1} = 0, as H_r = 1 + a·H_{r+1}; w_{r+1} is known
after round r, so that the conditional expectation may be dropped; and E⟨V_1, x* − w_1⟩ = 0. Sum by parts.
Noise that is fresh each round has a = 0, noise cancelling has a = 1 − m/M, noise that accumulates has a = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anechoic.errors import BadInput, positive, whole


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _within(name: str, value: float | None, limit_name: str, limit: float) -> None:
    if value is not None and not 0 <= value <= limit:
        raise BadInput(f"{name} must be between 0 and {limit_name} ({limit:g}), not {value!r}")


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a problem, a federation and a guarantee; refused if they cannot be true.

    Parameters
    ----------
    diameter, lipschitz, smoothness
        D of the domain; G and L of every f_i(·; z).
    machines, participants, rounds, dimension
        M, m ≤ M, T and d.
    rho
        The guarantee, ρ²/2-zCDP; infinity for no noise.
    gradient_at_optimum
        G* = ‖∇f(x*)‖, at most G, which it is taken to be if left out.
    deviation, heterogeneity
        σ and ξ: the root mean square distance of ∇f_i(x; z) from ∇f_i(x), and of ∇f_i(x) from ∇f(x); likewise.
    smoothness_deviation, smoothness_heterogeneity
        σ_L and ξ_L: the same of gradient differences, for each unit of distance; at most L, and L if left out.

    >>> c = Constants(diameter=1, lipschitz=2, smoothness=3, machines=8, participants=4, rounds=100, dimension=5, rho=1)
    >>> c.sensitivity, c.corrected_deviation, c.samples
    (8, 8, 400)
    """

    diameter: float
    lipschitz: float
    smoothness: float
    machines: int
    participants: int
    rounds: int
    dimension: int
    rho: float
    gradient_at_optimum: float | None = None
    deviation: float | None = None
    heterogeneity: float | None = None
    smoothness_deviation: float | None = None
    smoothness_heterogeneity: float | None = None

    def __post_init__(self) -> None:
        for name in ("diameter", "lipschitz", "smoothness"):
            positive(name, getattr(self, name))
        for name in ("machines", "participants", "rounds", "dimension"):
            whole(name, getattr(self, name))
        if self.rho != math.inf:
            positive("rho", self.rho)
        if self.participants > self.machines:
            raise BadInput(f"participants must be at most machines ({self.machines}), not {self.participants}")
        for name in ("gradient_at_optimum", "deviation", "heterogeneity"):
            _within(name, getattr(self, name), "lipschitz", self.lipschitz)
        for name in ("smoothness_deviation", "smoothness_heterogeneity"):
            _within(name, getattr(self, name), "smoothness", self.smoothness)

    @property
    def sensitivity(self) -> float:
        """S = G + 2LD, the bound on ‖s‖ (lem:bound_s); replacing a record moves s by at most 2S."""
        return self.lipschitz + 2 * self.smoothness * self.diameter

    @property
    def samples(self) -> int:
        """All samples that are used, n = mT."""
        return self.participants * self.rounds

    @property
    def optimum(self) -> float:
        """G*, or G in its place."""
        return _or(self.gradient_at_optimum, self.lipschitz)

    @property
    def corrected_deviation(self) -> float:
        """σ̃ = σ + 2σ_L·D: the deviation of a correction s."""
        return _or(self.deviation, self.lipschitz) + 2 * _or(self.smoothness_deviation, self.smoothness) * self.diameter

    @property
    def corrected_heterogeneity(self) -> float:
        """ξ̃ = ξ + 2ξ_L·D: the heterogeneity of the corrections s."""
        return (
            _or(self.heterogeneity, self.lipschitz)
            + 2 * _or(self.smoothness_heterogeneity, self.smoothness) * self.diameter
        )


EXPERIMENT = Constants(
    diameter=0.1,
    lipschitz=math.sqrt(2 * 785),
    smoothness=785 / 2,
    machines=100,
    participants=50,
    rounds=1200,
    dimension=7850,
    rho=4,
)
"""The paper's first experiment: softmax regression on MNIST with M = 100, m = 50, n = 60,000 and ρ = 4."""


class Bound(NamedTuple):
    """A bound on the excess loss by its parts, so that one sees which of them dominates.

    >>> Bound(optimisation=1.0, statistical=2.0, privacy=4.0).total
    7.0
    """

    optimisation: float
    statistical: float
    privacy: float

    @property
    def total(self) -> float:
        """The bound itself."""
        return sum(self)


def step_noise_cancelling(constants: Constants) -> float:
    """Return the η of thm:converge (untrusted server): min{ρDm / (2ST√(2Md(1 + ln T))), 1/(8LT)}.

    >>> print(f"{step_noise_cancelling(EXPERIMENT):.3e}")
    1.980e-08
    """
    c = constants
    noise = 2 * c.sensitivity * c.rounds * math.sqrt(2 * c.machines * c.dimension * (1 + math.log(c.rounds)))
    return min(c.rho * c.diameter * c.participants / noise, 1 / (8 * c.smoothness * c.rounds))


def step_trusted(constants: Constants) -> float:
    """Return the η of thm:convergeT (trusted server, any m ≤ M): min{ρDm / (2ST√d), 1/(4LT)}.

    >>> print(f"{step_trusted(EXPERIMENT):.3e}")
    5.308e-07
    """
    c = constants
    noise = 2 * c.sensitivity * c.rounds * math.sqrt(c.dimension)
    return min(c.rho * c.diameter * c.participants / noise, 1 / (4 * c.smoothness * c.rounds))


def step_full_participation(constants: Constants) -> float:
    """Return the η of full participation and an untrusted server: min{ρD√M / (2ST√d), 1/(4LT)}.

    The server sees the mean of M independent noises of variance 4S²T/ρ², fresh each round. That is thm:convergeT with
    noise of variance 4S²T/(ρ²M) in the place of 4S²T/(ρ²m²).

    >>> from dataclasses import replace
    >>> print(f"{step_full_participation(replace(EXPERIMENT, participants=100)):.3e}")
    1.592e-07
    """
    c = _full(constants)
    noise = 2 * c.sensitivity * c.rounds * math.sqrt(c.dimension)
    return min(c.rho * c.diameter * math.sqrt(c.machines) / noise, 1 / (4 * c.smoothness * c.rounds))


def step_fresh_noise(constants: Constants) -> float:
    """Return an η for fresh noise that accumulates: min{ρD√(3m) / (2ST√(dT)), 1/(4LT)}.

    The server sees Y_t = Σ_{s≤t} u_s with independent u_s of variance dς²/m in all, ς = 2S/ρ. For a linear loss and no
    boundary the noise costs (η/2)·E(‖Σ_{t≤T} Y_t‖² + Σ_{t≤T} ‖Y_t‖²) ≈ ηdς²T³/(6m); the first step above balances that
    against D²/(2η). :func:`bound_fresh_noise` holds for this choice on any problem.

    >>> print(f"{step_fresh_noise(EXPERIMENT):.3e}")
    5.630e-09
    """
    c = constants
    noise = 2 * c.sensitivity * c.rounds * math.sqrt(c.dimension * c.rounds)
    return min(c.rho * c.diameter * math.sqrt(3 * c.participants) / noise, 1 / (4 * c.smoothness * c.rounds))


def bound_noise_cancelling(constants: Constants, proof: Literal["paper", "complete"] = "paper") -> Bound:
    """Return the bound on the excess loss of noise cancelling at its own step and the paper's noise.

    With ``proof="paper"`` it is thm:converge,

        4D ((G* + 4LD)/T + √(σ̃² + ξ̃²)/√(mT) + 2S√(2Md(1 + ln T))/(ρmT)),

    refused where M/m > T, which its proof excludes and its statement forgets. The proof also replaces the noise that
    machine i last sent by its average over who took part when, as if the iterates did not depend on that. They do, so
    that for m < M/2 the bound is what a linear loss without a boundary would cost, and is not proved in general.

    With ``proof="complete"`` the privacy term is multiplied by (1 + M/(2m))/2, which is proved. The factor is at most 1
    if m ≥ M/2: there the paper's bound holds as it stands, whatever T.

    Notes
    -----
    The complete proof. The server's noise Y_t = (1/m) Σ_i Y_{t,i} has E[Y_{t+1} | rounds 1..t] = (1 − p)·Y_t with
    p = m/M, since a machine keeps its noise unless it is drawn, and H_r ≤ 1/p. By the identity of this module and
    ⟨a, b⟩ ≤ ‖b‖²/(4η) + η‖a‖²,

        Σ_{τ≤t} E⟨Y_τ, x* − w_{τ+1}⟩ ≤ Σ_{r≤t} E‖w_r − w_{r+1}‖²/(4η) + (η/p²) Σ_{r≤t} E‖Y_r‖².

    Given who took part when, the Y_{r,i} are independent with variance κd·N_{r,i}, κ = 4S²(1 + ln T)/ρ², and
    E[N_{r,i}] = pr, hence E‖Y_r‖² = κdr/m, and the last sum is at most ηκd·t(t+1)/(2mp²). Twice that over α_{1:T} is
    2ηκdM²/m³; the paper has 4ηκdM/m², equal at M = 2m. At the paper's step the two halves of its privacy term,
    2D²/(ηT²) and this, are equal; only the second is multiplied by M/(2m).

    >>> print(f"{bound_noise_cancelling(EXPERIMENT).privacy:.2f} of {bound_noise_cancelling(EXPERIMENT).total:.2f}")
    1.40 of 1.74
    """
    c = constants
    privacy = 2 * c.sensitivity * math.sqrt(2 * c.machines * c.dimension * (1 + math.log(c.rounds)))
    if proof == "complete":
        privacy *= (1 + c.machines / (2 * c.participants)) / 2
    elif proof != "paper":
        raise BadInput(f"proof must be 'paper' or 'complete', not {proof!r}")
    elif c.machines > c.participants * c.rounds:
        raise BadInput(
            f"the paper's bound needs machines/participants of at most rounds, not "
            f"{c.machines}/{c.participants} with {c.rounds} rounds; use proof='complete'"
        )
    return _bound(c, 4, c.corrected_heterogeneity, privacy / (c.rho * c.samples))


def bound_trusted(constants: Constants) -> Bound:
    """Return thm:convergeT, the bound on the excess loss with a trusted server at its own step and noise.

    It is 4D ((G* + 2LD)/T + √(σ̃² + ξ̃²)/√(mT) + 2S√d/(ρmT)). Here a = 0: the noise is independent of all before it, so
    that noise and gradient share the whole of ‖w_τ − w_{τ+1}‖²/(2η), and 1/(4LT) suffices.

    >>> print(f"{bound_trusted(EXPERIMENT).privacy:.3f} of {bound_trusted(EXPERIMENT).total:.3f}")
    0.035 of 0.347
    """
    c = constants
    privacy = 2 * c.sensitivity * math.sqrt(c.dimension)
    return _bound(c, 2, c.corrected_heterogeneity, privacy / (c.rho * c.samples))


def bound_full_participation(constants: Constants) -> Bound:
    """Return the bound on the excess loss with m = M and an untrusted server at its own step and noise.

    It is 4D ((G* + 2LD)/T + σ̃/√(MT) + 2S√(Md)/(ρMT)): thm:convergeT with the noise of
    :func:`step_full_participation`, and no heterogeneity, as all machines take part.

    >>> from dataclasses import replace
    >>> print(f"{bound_full_participation(replace(EXPERIMENT, participants=100)).privacy:.3f}")
    0.174
    """
    c = _full(constants)
    privacy = 2 * c.sensitivity * math.sqrt(c.machines * c.dimension)
    return _bound(c, 2, 0.0, privacy / (c.rho * c.samples))


def bound_fresh_noise(constants: Constants) -> Bound:
    """Return a bound on the excess loss of fresh noise that accumulates, at its own step.

    With ς = 2S/ρ it is 4D ((G* + 2LD)/T + √(σ̃² + ξ̃²)/√(mT) + (1 + 1/(2√3))·ς√d/√(mT)): against noise cancelling, the
    privacy term shrinks as 1/√T instead of 1/T.

    Notes
    -----
    Proof. Y_t is a martingale with E‖Y_t‖² = dς²t/m, and is treated as the sampling error is:
    Σ_{τ≤t} E⟨Y_τ, x* − w_{τ+1}⟩ ≤ D Σ_{τ≤t} √(E‖Y_τ‖²) ≤ Dς√(d/m)·t^{3/2}. So no step pays for it, 1/(4LT) suffices,
    and any step η ≤ 1/(4LT) costs 2D²/(ηT²), which at :func:`step_fresh_noise` is at most 8LD²/T + 2Dς√d/√(3mT).

    The identity of this module, with H_r = t − r + 1 and Σ_{r≤t} r(t−r+1)² = t(t+1)²(t+2)/12, gives instead
    2D²/(ηT²) + ηdς²(T+1)(T+2)/(3m), least at η ≈ D√(6m)/(ς√d·T²), where it is about 1.63·Dς√(d/m) for every T: larger
    from some ten rounds on.

    >>> print(f"{bound_fresh_noise(EXPERIMENT).privacy:.2f}")
    11.01
    """
    c = constants
    privacy = (1 + 1 / math.sqrt(12)) * 2 * c.sensitivity * math.sqrt(c.dimension)
    return _bound(c, 2, c.corrected_heterogeneity, privacy / (c.rho * math.sqrt(c.samples)))


def lower_bound_trusted(constants: Constants) -> Bound:
    """Return GD (1/√n + √d/(ρn)), below which no algorithm can be with a trusted server, up to a constant.

    An Ω: absolute constants and logarithms of 1/δ are left out, ρ stands for the ε of Bassily et al. (2014), and the
    claim is about the worst convex G-Lipschitz problem with n samples; it says nothing once it exceeds GD.

    >>> print(f"{lower_bound_trusted(EXPERIMENT).total:.4f}")
    0.0176
    """
    return _lower(constants, 1)


def lower_bound_untrusted(constants: Constants) -> Bound:
    """Return GD (1/√n + √(Md)/(ρn)), the same with an untrusted server (Lowy & Razaviyayn 2023).

    Up to a constant, as :func:`lower_bound_trusted`; here each of the M machines must protect what it sends.

    >>> print(f"{lower_bound_untrusted(EXPERIMENT).total:.4f}")
    0.0308
    """
    return _lower(constants, constants.machines)


def _bound(c: Constants, smooth: int, heterogeneity: float, privacy: float) -> Bound:
    """Return 4D times (G* + smooth·LD)/T, √(σ̃² + heterogeneity²)/√(mT) and ``privacy``."""
    return Bound(
        4 * c.diameter * (c.optimum + smooth * c.smoothness * c.diameter) / c.rounds,
        4 * c.diameter * math.hypot(c.corrected_deviation, heterogeneity) / math.sqrt(c.samples),
        4 * c.diameter * privacy,
    )


def _lower(c: Constants, protectors: int) -> Bound:
    scale = c.lipschitz * c.diameter
    privacy = scale * math.sqrt(protectors * c.dimension) / (c.rho * c.samples)
    return Bound(0.0, scale / math.sqrt(c.samples), privacy)


def _full(c: Constants) -> Constants:
    if c.participants != c.machines:
        raise BadInput(f"full participation needs participants equal to machines ({c.machines}), not {c.participants}")
    return c
