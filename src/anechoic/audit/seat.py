"""The trusted server, from other machines' seats: who sees the queries alone, and wants to know a record elsewhere.

The server and the victim are those of the reference engine. The adversary is all other machines. They answer with
zeros, so that nothing but the victim's records and the server's noise moves the next query, and it learns the linear
rule that tells sequences of queries apart best, with no formula for how a query comes of the messages.

The victim is called in the first rounds, as often as it may be. In the localised algorithm the last release of a phase
is in no query, since the phase's result is the mean of the points before each step. Where a machine may be called in
every round, one of its R releases is paid for and never seen, and no adversary in this seat learns more than √(1 − 1/R)
of ρ. Where it may be called less often, as among many machines, it need not be in the last round, and then all is seen.
"""

from __future__ import annotations

import numpy as np

from anechoic.audit.distinguisher import CERTIFIED, Played, Told, judged, promised
from anechoic.audit.findings import Check, Finding
from anechoic.audit.target import Effort, Ints, Target, calls, shard_of
from anechoic.engines.machine import Machine
from anechoic.engines.server import Server
from anechoic.privacy.budget import Budget
from anechoic.privacy.ledger import Floats, Ledger
from anechoic.privacy.noise import SERVER, SeededGaussian, generator

VICTIM = 0


def distinguish_from_a_seat(target: Target, effort: Effort, told: Told = lambda _: None) -> Finding:
    """Attack a federation with a trusted server from other machines' seats; see :func:`distinguish`."""
    played = watch(target, effort, told)
    promise, proven = promised(target.rho, played.ledgers)
    seat = "other machines': the queries that an honest server asks"
    return judged("distinguisher, seat", seat, played.coins, played.seen, promise, effort, (proven, *played.checks))


def watch(target: Target, effort: Effort, told: Told = lambda _: None) -> Played:
    """Sit through as many federations as are needed; nothing is silent but what the adversary itself says."""
    runs, together, seed = effort.runs, effort.together, effort.seed
    rule = target.rule(together)
    rounds, called, federations = rule.segments()[0].rounds, calls(rule), -(-runs // together)
    others = rule.setting.machines - 1
    coins: Ints = generator(seed, "participation", 1).integers(0, 2, (federations, together))
    seen: Floats = np.empty((federations, together, rounds))
    ledgers = []
    for index in range(federations):
        own = seed * federations + index
        ledger, shard, nowhere = Ledger(), shard_of(rule, coins[index]), Ledger()
        victim = Machine(VICTIM, shard, rule, SeededGaussian(own, VICTIM), nowhere, Budget(np.inf))
        server = Server(rule, np.zeros(rule.problem.dimension), SeededGaussian(own, SERVER), ledger, Budget(np.inf))
        for place in range(rounds):
            query = server.query()
            if asked := place < called:
                reply = victim.answer(query, victim.releases)
            zeros = np.zeros_like(reply.message)
            first, second = (reply.use._replace(owner=1 + (2 * place + one) % others) for one in (0, 1))
            server.absorb(query, [reply.message if asked else zeros, zeros], [reply.use if asked else first, second])
            seen[index, :, place] = server.query().terms[0].point[:together]
        if index < CERTIFIED:
            ledgers.append(ledger)
        told(min(runs, (index + 1) * together))
    whole = all(len(ledger) == rounds for ledger in ledgers)
    check = Check("every release is in the ledger", whole, f"{rounds} rounds, {len(ledgers[0])} rows")
    games = seen.reshape(-1, rounds)[:runs]
    return Played(coins.ravel()[:runs], games, np.zeros_like(games), ledgers, (check,))
