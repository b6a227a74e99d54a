"""The ledger in the language of ``dp-accounting``, so that the field's own accountant can check a certificate.

Each sum R_k that a record moves is one Gaussian mechanism, whose noise is to be stated in units of the distance between
the mechanism's two inputs. That distance is v_k, with one record *replaced*; the multiplier is σ_k/v_k.

Leave the accountants' ``neighboring_relation`` at its default: both then take neighbouring inputs to be one unit apart,
which is what the events state. Under ``REPLACE_ONE`` the RDP accountant does the same, but the PLD accountant takes
them to be two units apart, as if the unit were the length of a record's contribution: it then answers for 2ρ, which is
safe and far too much. (Halving the unit to suit it would make the RDP accountant promise ρ/2, which is false.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anechoic.privacy.certificate import worst_record
from anechoic.privacy.ledger import Ledger

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def events(ledger: Ledger, machine: int) -> DpEvent:
    """Return what the worst-placed record of ``machine`` meets, as one event; it costs ρ² = Σ_k v_k²/σ_k².

    The other records of the machine meet no more, so the guarantee that an accountant computes from the event holds
    for each of them. A machine of which nothing was released gives ``NoOpDpEvent``, a release without noise
    ``NonPrivateDpEvent``.

    >>> from anechoic.privacy.ledger import Release, Use
    >>> ledger = Ledger()
    >>> for k in (1, 2):
    ...     ledger.append(Release(0, k, k - 1, k, 4.0, (Use(0, k - 1, k, 2.0),)))
    >>> [event.noise_multiplier for event in events(ledger, 0).events]
    [2.0, 2.0]
    >>> events(ledger, 1)
    NoOpDpEvent()
    """
    from dp_accounting import ComposedDpEvent, GaussianDpEvent, NonPrivateDpEvent, NoOpDpEvent

    reach = worst_record(ledger, machine)
    if not len(reach.shift):
        return NoOpDpEvent()
    if not reach.sigma.all():
        return NonPrivateDpEvent()
    return ComposedDpEvent([GaussianDpEvent(float(multiplier)) for multiplier in reach.sigma / reach.shift])
