"""Audits: attacks that try to break what a certificate says, on the code that runs in a federation.

Each attack returns a :class:`Finding`: a lower bound on the privacy loss, with its confidence, beside the certificate's
upper bound, and checks of what must be so where the certificate is true.

- :mod:`~anechoic.audit.distinguisher`: one record, from the server's seat, with queries and parents of its own choice;
- :mod:`~anechoic.audit.seat`: one record, from other machines' seats, where the server is trusted;
- :mod:`~anechoic.audit.canaries`: many records in one run, on real machines with stores;
- :mod:`~anechoic.audit.membership`: one record, from the final model alone;
- :mod:`~anechoic.audit.held`: what a machine's store must look like to its owner;
- :mod:`~anechoic.audit.sent`: what a server's transcript must look like to who has the stores;
- :mod:`~anechoic.audit.planted`: canaries in the data of a real federation, guessed from such a transcript.

What guesses prove is in :mod:`~anechoic.audit.evidence` and :mod:`~anechoic.audit.promises`, the law of the noise in
:mod:`~anechoic.audit.law`, and that of records that are drawn in secret in :mod:`~anechoic.audit.secret`.
"""

from anechoic.audit.attacks import ATTACKS, carry_out
from anechoic.audit.canaries import find_canaries
from anechoic.audit.distinguisher import distinguish
from anechoic.audit.findings import Check, Finding
from anechoic.audit.held import check_stores
from anechoic.audit.membership import infer_membership
from anechoic.audit.planted import Planted, guess_planted, read_planted
from anechoic.audit.seat import distinguish_from_a_seat
from anechoic.audit.sent import check_transcript
from anechoic.audit.target import Effort, Target

__all__ = [
    "ATTACKS",
    "Check",
    "Effort",
    "Finding",
    "Planted",
    "Target",
    "carry_out",
    "check_stores",
    "check_transcript",
    "distinguish",
    "distinguish_from_a_seat",
    "find_canaries",
    "guess_planted",
    "infer_membership",
    "read_planted",
]
