"""Your own consumers under simulated time: virtual clock, network in memory, processes that crash; one seed, one run.

    from kclient.simulation import Simulation, simulate

    async def scenario(simulation: Simulation) -> None:
        simulation.start("billing-1", bill, simulation.bootstrap_servers)     # bill: the code to test
        faults = simulation.draw_faults(seconds=60)
        await asyncio.gather(simulation.produce("orders", orders, seconds=60), simulation.inject(faults))
        await simulation.heal()
        await simulation.all_handled()

    simulate(scenario, seed=7, brokers=3, topics={"orders": 6})

The pytest fixture `kafka_simulation` runs a scenario for many seeds. `simulation.py` has the calls of a scenario,
`faults.py` the kinds of faults, `members.py` what a process is, `handled.py` what was handled.

Below it is a world that knows nothing of Kafka:

    from kclient.simulation.world import World, run

    async def main(world: World) -> str:
        broker, client = world.host("broker"), world.host("client")       # 10.0.0.1 and 10.0.0.2, names resolve
        await broker.start(serve())                     # a task on that host: it calls loop.create_server(…)
        world.loop.call_later(5.0, broker.block, 2.0)   # faults are plain calls, see below
        consumer = AsyncConsumer("t", bootstrap_servers="broker:9092", runtime=world.runtime("client"), …)
        return await client.start(use(consumer))        # only make and use a client on its own host

    outcome = run(seed=7, main=main, limit=600.0)       # .result .digest .seconds .callbacks .findings .history

`run(…, history=True)` keeps a readable history; `world.loop.trace(…)` adds to it and to the digest. `findings` must be
empty. A task of a host that dies is never done: do not await it without a limit. Code that is on no host (the test)
is always up, and is "world" to the network; it may listen behind the address of any host, so an embedded cluster that
runs on no host can have a host for each broker: `host.start` nothing there, only cut its ways. `host.leftovers()`
says which tasks, timers and connections a host still has.

    faults of a host    pause() resume() block(seconds) kill() power_off() restart(); world.clock(name).skew
    of the way          network.cut(a, b) cut_both(a, b) heal(a, b) heal_all(); refusing, swallowing (sets of names)
    of names            network.names[name] = [ips]; network.lookup_errors[name] = socket.EAI_AGAIN
    of one connection   for c in network.between(a, b): c.reset(); c.client.freeze() thaw();
                        c.backward.trip = Trip(Act.FIN | RST | STALL | SILENCE, after_bytes, seconds);
                        c.forward.stall(seconds) silence(); c.backward.mangle = function from segment to segment
    of all connections  network.default and network.wires[a, b]: latency, jitter, bandwidth, split, coalesce, window

Each module imports only from those above it:

    process.py    a process, up, paused or dead        pipe.py       one direction of a connection
    schedule.py   handles, timers, tasks               transport.py  one end of a connection
    stuck.py      deadlock, hang, hot loop             server.py     a listening port
    loop.py       time, order, the digest              network.py    hosts, connections, cuts
                                                       sockets.py    names, connecting, listening, TLS
    world.py      one run, and what is not real in it
    members.py · handled.py · faults.py · simulation.py    Kafka: processes, records, faults, a run of all
"""

from kclient.simulation.faults import PlannedFault
from kclient.simulation.handled import HandledRecords
from kclient.simulation.members import SimulatedMember
from kclient.simulation.simulation import Simulation, SimulationRunner, simulate
from kclient.simulation.stuck import (
    SimulationDeadlockError,
    SimulationLivelockError,
    SimulationStuckError,
    SimulationTimeoutError,
)
from kclient.simulation.world import Outcome, SimulationForbiddenError

__all__ = [
    "HandledRecords",
    "Outcome",
    "PlannedFault",
    "SimulatedMember",
    "Simulation",
    "SimulationDeadlockError",
    "SimulationForbiddenError",
    "SimulationLivelockError",
    "SimulationRunner",
    "SimulationStuckError",
    "SimulationTimeoutError",
    "simulate",
]
