"""The reference engine: machine by machine, running the same machine and server rules as a real federation."""

from __future__ import annotations

from collections.abc import Callable

from anechoic.algorithms.base import Algorithm, State
from anechoic.engines.machine import Machine, hash_of
from anechoic.engines.server import Server
from anechoic.federation import Federation
from anechoic.participation import Trace
from anechoic.privacy.budget import Budget
from anechoic.privacy.ledger import Ledger
from anechoic.privacy.noise import SERVER, Lots, NoiseSource, SeededGaussian, SeededWhole
from anechoic.records import Vector

Observer = Callable[[int, State], None]
"""Called after each round with the number of rounds done and the server's state."""


def run_machines(
    algorithm: Algorithm, federation: Federation, trace: Trace, start: Vector, seed: int, observe: Observer
) -> tuple[State, Ledger]:
    """Run every round of the trace and return the server's last state and the ledger of all releases."""
    ledger, machines = Ledger(algorithm.setting.sampling), dict[int, Machine]()
    rho = algorithm.allowance

    def noise_of(who: int) -> NoiseSource:
        return SeededGaussian(seed, who) if algorithm.setting.grid is None else SeededWhole(seed, who)

    server = Server(algorithm, start, noise_of(SERVER), ledger, Budget(rho))
    for index in range(trace.rounds):
        query = server.query()
        query_hash = hash_of(query)
        replies = []
        for name in map(int, trace.round(index)):
            if name not in machines:
                shard = federation.shard(name)
                noise, lots = noise_of(name), Lots(seed, name)
                machines[name] = Machine(name, shard, algorithm, noise, ledger, Budget(rho), lots=lots)
            machine = machines[name]
            replies.append(machine.answer(query, machine.releases, query_hash))
        server.absorb(query, [reply.message for reply in replies], [reply.use for reply in replies])
        for reply in replies:
            machines[reply.machine].acknowledge(reply.number)
        observe(index + 1, server.state)
    return server.state, ledger
