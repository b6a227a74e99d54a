"""The private policy of a machine: what its owner allows, whatever a server proposes."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anechoic.algorithms.base import Algorithm
from anechoic.errors import BadInput, Refused, brief
from anechoic.privacy.conversions import Route, rho_for
from anechoic.privacy.staircase import Sampler
from anechoic.protocol.inspection import inspect
from anechoic.protocol.proposal import Proposal
from anechoic.settings import Count, Positive, build, check


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a machine's owner allows. The file is TOML, with the names of these parameters as keys.

    Parameters
    ----------
    rho : float, optional
        The budget: all that the machine ever sends is ρ²/2-zCDP. Or ``epsilon`` and ``delta``, which are turned into
        the ρ that meets them for integer noise.
    clip : float, optional
        The largest norm to which a record's contribution may be clipped; any, where it is left out.
    batch : int, optional
        The most records that one release may use.
    earlier : list of str, optional
        The stores of earlier runs on the same records. What they have let out counts against the budget.
    runs : list of str, optional
        The names of the runs that the machine takes part in; any, where it is left out.
    trust_server : bool
        Whether messages may go without noise to a server that adds it (the trusted-server algorithms).
    witness : str, optional
        A file, best on another disk than the store, by which a store that was restored from a copy is recognised.
    sampler : {'opendp', 'staircase'}
        What draws the noise, exactly in either case: OpenDP, or for large models, a hundred times as fast, this
        package's own :class:`~anechoic.privacy.staircase.Staircase`.

    >>> round(Policy(epsilon=2.5, delta=1e-5).budget, 4)
    0.612
    """

    rho: Positive | None = None
    epsilon: Positive | None = None
    delta: Positive | None = None
    clip: Positive | None = None
    batch: Count | None = None
    earlier: tuple[str, ...] | None = None
    runs: tuple[str, ...] | None = None
    trust_server: bool = False
    witness: str | None = None
    sampler: Sampler = "opendp"

    def __post_init__(self) -> None:
        check(self)
        given = self.epsilon is not None or self.delta is not None
        if (self.rho is None) != given or (given and None in (self.epsilon, self.delta)):
            raise BadInput("a policy gives its budget as rho, or as epsilon and delta")
        if self.delta is not None and self.delta >= 1:
            raise BadInput(f"delta must be below 1, not {self.delta}")

    @classmethod
    def read(cls, path: Path) -> Policy:
        """Return the policy in a file."""
        try:
            return build(cls, tomllib.loads(path.read_text(encoding="utf-8")))
        except BadInput as error:
            raise BadInput(f"the policy {path}: {error}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise BadInput(f"the policy {path} cannot be read: {brief(error)}") from None

    @cached_property
    def budget(self) -> float:
        """The ρ that a run must not pass: of the whole, what earlier runs have left, as squares of ρ add up."""
        if not self.earlier:
            return self.whole
        spent = math.hypot(*(_spent(Path(store)) for store in self.earlier))
        if not spent < self.whole:
            raise Refused(f"earlier runs have spent ρ = {spent:.4g} of the policy's budget of ρ = {self.whole:.4g}")
        return math.sqrt((self.whole - spent) * (self.whole + spent))

    @property
    def whole(self) -> float:
        """The ρ that all runs on these records must not pass together."""
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        assert self.delta is not None
        return rho_for(self.epsilon, self.delta, Route.WHOLE)

    def hold(self, proposal: Proposal, rule: Algorithm) -> None:
        """Refuse a proposal that does not fit, with a sentence that says what would."""
        if self.runs is not None and proposal.run not in self.runs:
            raise Refused(f"the policy allows the runs {', '.join(self.runs)}, not {proposal.run!r}")
        if rule.noise_by == "server" and not self.trust_server:
            raise Refused(f"{proposal.algorithm} trusts the server with messages without noise; the policy does not")
        if proposal.rho > self.budget * (1 + 1e-9):
            left = " that earlier runs have left" if self.earlier else ""
            budget = f"over the policy's budget of ρ = {self.budget:.4g}{left}"
            raise Refused(f"the run is for ρ = {proposal.rho:.4g}, {budget}")
        if self.clip is not None and rule.clip > self.clip * (1 + 1e-12):
            raise Refused(f"the run clips to {rule.clip:.6g}, over the policy's clip of {self.clip:.6g}")
        if self.batch is not None and proposal.batch > self.batch:
            raise Refused(f"the run uses {proposal.batch} records a release, the policy allows {self.batch}")


def _spent(store: Path) -> float:
    """Return what a run let out by the certificate of its store."""
    account = inspect(store)
    if "identity" not in account.about or account.entrusted:
        raise BadInput(
            f"the policy names {store} as an earlier run's store, and what that run let out stands in its server's "
            "ledger: lower the budget by hand"
        )
    return account.rho
