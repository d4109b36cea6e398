"""Programs under simulated time: a virtual clock, an in-memory network, hosts that crash; one seed, one history.

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
"""
