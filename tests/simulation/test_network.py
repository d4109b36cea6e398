"""Who reaches whom: opening, names, partitions, half-open ends, cuts in the middle of a frame."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from kclient.simulation.pipe import Act, Trip, Wire
from kclient.simulation.world import World, run
from tests.simulation.support import PORT, RecordingProtocol, connected, plain


async def dial(world: World, address: str = "b", port: int = PORT) -> Any:
    """Connect host a to something; what comes of it and how long it took."""
    world.host("a")
    return await again(world, address, port)


async def again(world: World, address: str = "b", port: int = PORT) -> Any:
    began = world.loop.time()
    host = world.network.by_name["a"]
    try:
        result: Any = await host.start(world.loop.create_connection(RecordingProtocol, address, port))
    except OSError as exc:
        result = exc
    return result, world.loop.time() - began


async def listen(world: World, name: str = "b", ear: type[RecordingProtocol] = RecordingProtocol) -> Any:
    return await world.host(name).start(world.loop.create_server(ear, name, PORT))


# --- opening


def test_refused_where_nothing_listens() -> None:
    async def main(world: World) -> Any:
        plain(world)
        world.host("b")
        return await dial(world)

    problem, seconds = run(1, main).result
    assert isinstance(problem, ConnectionRefusedError)
    assert "10.0.0.1" in str(problem)
    assert seconds == pytest.approx(0.02, abs=0.01)


def test_refused_and_accepted_again() -> None:
    async def main(world: World) -> Any:
        await listen(world)
        world.network.refusing.add("b")
        refused, _ = await dial(world)
        world.network.heal_all()
        return refused, await again(world)

    refused, (accepted, _) = run(1, main).result
    assert isinstance(refused, ConnectionRefusedError)
    assert accepted[0].get_extra_info("peername") == ("10.0.0.1", PORT)


@pytest.mark.parametrize("fault", ["swallowing", "part", "cut there", "cut back", "no such host"])
def test_a_swallowed_syn_ends_by_timeout(fault: str) -> None:
    async def main(world: World) -> Any:
        await listen(world)
        network = world.network
        if fault == "swallowing":
            network.swallowing.add("b")
        elif fault == "part":
            network.cut_both("a", "b")
        elif fault == "cut there":
            network.cut("a", "b")
        elif fault == "cut back":
            network.cut("b", "a")
        else:
            return await dial(world, "10.9.9.9")
        return await dial(world)

    problem, seconds = run(1, main).result
    assert isinstance(problem, TimeoutError)
    assert seconds == pytest.approx(127, abs=0.1)


def test_a_syn_is_repeated_until_the_way_is_free() -> None:
    async def main(world: World) -> Any:
        await listen(world)
        world.network.cut_both("a", "b")
        world.loop.call_later(2.0, world.network.heal_all)
        return await dial(world)

    (_, ear), seconds = run(1, main).result
    assert ear.events == ["made"]
    assert seconds == pytest.approx(3.0, abs=0.1)  # sent at 0, 1 and 3


def test_a_port_is_taken_once_and_free_after_close() -> None:
    async def main(world: World) -> None:
        server = await listen(world)
        b, loop = world.network.by_name["b"], world.loop
        assert server.sockets[0].getsockname() == ("10.0.0.1", PORT)
        with pytest.raises(OSError, match="in use"):
            await b.start(loop.create_server(RecordingProtocol, None, PORT))
        with pytest.raises(OSError, match="could not bind"):
            await b.start(loop.create_server(RecordingProtocol, "10.0.0.77", PORT + 1))
        other = await b.start(loop.create_server(RecordingProtocol, "0.0.0.0", 0))
        assert other.sockets[0].getsockname()[1] not in (0, PORT)
        server.close()
        assert server.sockets == ()
        await b.start(loop.create_server(RecordingProtocol, None, PORT))

    run(1, main)


def test_loopback_is_a_hosts_own() -> None:
    async def main(world: World) -> Any:
        await listen(world)
        b = world.network.by_name["b"]
        transport, _ = await b.start(world.loop.create_connection(RecordingProtocol, "localhost", PORT))
        refused, _ = await dial(world, "127.0.0.1")
        return transport.get_extra_info("peername"), refused

    peer, refused = run(1, main).result
    assert peer == ("127.0.0.1", PORT)
    assert isinstance(refused, ConnectionRefusedError)


def test_streams_run_on_it() -> None:
    async def main(world: World) -> Any:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            response = await reader.read()
            writer.close()
            await writer.wait_closed()
        return response

    assert run(1, main).result == b"hello\n"


def test_a_server_that_cannot_make_a_protocol_resets() -> None:
    def fails() -> RecordingProtocol:
        raise ValueError("no protocol today")

    async def main(world: World) -> Any:
        b = world.host("b")
        await b.start(world.loop.create_server(fails, "b", PORT))
        (_, ear), _ = await dial(world)
        await asyncio.sleep(1)
        assert not world.network.connections
        return ear.problem

    outcome = run(1, main)
    assert isinstance(outcome.result, ConnectionResetError)
    assert "no protocol today" in outcome.findings[0]


def test_a_server_outside_all_hosts_may_listen_on_the_address_of_one() -> None:
    async def main(world: World) -> Any:
        a, b = world.host("a"), world.host("b")
        far = RecordingProtocol(lambda data: data)
        await world.loop.create_server(lambda: far, "b", PORT)
        transport, near = await a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))
        world.network.cut_both("a", "b")
        a.call(transport.write, b"hello")
        b.pause()
        await asyncio.sleep(1)
        before = near.heard
        world.network.heal_all()
        await asyncio.sleep(2)
        heard = near.heard
        b.kill()
        await asyncio.sleep(1)
        problems = type(near.problem), type(far.problem)
        return before, heard, *problems, far.transport.runs_elsewhere, transport.runs_elsewhere

    expected = (b"", b"hello", ConnectionResetError, ConnectionResetError, True, False)
    assert run(1, main).result == expected


# --- names


def test_names_fail_change_and_have_many_addresses() -> None:
    async def main(world: World) -> None:
        network = world.network
        network.swallowing.add("dead")
        network.syn_seconds = 3.0
        world.host("dead")
        await listen(world)
        network.names["bootstrap"] = ["10.0.0.1", "10.0.0.2"]
        (transport, _), seconds = await dial(world, "bootstrap")
        assert transport.get_extra_info("peername") == ("10.0.0.2", PORT)
        assert 3.0 < seconds < 3.5
        network.names["bootstrap"] = ["10.0.0.2"]
        _, seconds = await again(world, "bootstrap")
        assert seconds < 0.5
        network.lookup_errors["bootstrap"] = socket.EAI_AGAIN
        problem, _ = await again(world, "bootstrap")
        assert isinstance(problem, socket.gaierror)
        assert problem.errno == socket.EAI_AGAIN
        unknown, _ = await again(world, "nowhere")
        assert unknown.errno == socket.EAI_NONAME
        network.heal_all()
        runtime = world.runtime("a")
        assert await runtime.canonical_names("bootstrap", PORT) == ["b"]

    run(1, main)


# --- the way


@pytest.mark.parametrize("both", [True, False])
def test_a_short_partition_loses_nothing(both: bool) -> None:
    async def main(world: World) -> Any:
        pair = await connected(world, far=RecordingProtocol(lambda data: b"<" + data + b">"))
        (world.network.cut_both if both else world.network.cut)("a", "b")
        pair.a.call(pair.transport.write, b"one")
        pair.a.call(pair.transport.write, b"two")
        await asyncio.sleep(20)
        heard = pair.far.heard
        world.network.heal_all()
        await asyncio.sleep(2)
        return heard, pair.far.heard, pair.near.heard.replace(b"><", b""), pair.near.events

    assert run(1, main).result == (b"", b"onetwo", b"<onetwo>", ["made"])


def test_one_way_the_other_still_passes_without_acknowledgements() -> None:
    async def main(world: World) -> Any:
        plain(world, window_bytes=1000, retransmit_seconds=1e6)
        pair = await connected(world)
        world.network.cut("b", "a")
        pair.a.call(pair.transport.write, b"x" * 5000)
        await asyncio.sleep(10)
        heard = len(pair.far.heard)
        world.network.heal("a", "b")
        await asyncio.sleep(10)
        return heard, len(pair.far.heard)

    assert run(1, main).result == (1000, 5000)


@pytest.mark.parametrize("direction", [("a", "b"), ("b", "a")])
def test_a_long_partition_ends_by_timeout_for_the_sender_alone(direction: tuple[str, str]) -> None:
    async def main(world: World) -> Any:
        plain(world, retransmit_seconds=30.0)
        pair = await connected(world)
        world.network.cut(*direction)
        began = world.loop.time()
        pair.a.call(pair.transport.write, b"anyone?")
        await asyncio.sleep(100)
        far_events = list(pair.far.events)
        world.network.heal_all()
        await asyncio.sleep(1)
        pair.b.call(pair.far.transport.write, b"still here")
        await asyncio.sleep(1)
        return pair.near.problem, pair.near.lost_at - began, far_events, pair.far.problem

    problem, seconds, far_events, far_problem = run(1, main).result
    assert isinstance(problem, TimeoutError)
    assert seconds == pytest.approx(30, abs=0.1)
    assert far_events == ["made"]
    assert isinstance(far_problem, ConnectionResetError)


def test_patience_begins_again_with_each_partition() -> None:
    async def main(world: World) -> Any:
        plain(world, retransmit_seconds=30.0)
        pair = await connected(world)
        for word in (b"one", b"two"):
            world.network.cut_both("a", "b")
            pair.a.call(pair.transport.write, word)
            await asyncio.sleep(25)
            world.network.heal_all()
            await asyncio.sleep(2)
        return pair.far.heard, pair.near.events

    assert run(1, main).result == (b"onetwo", ["made"])


def test_a_quiet_connection_outlives_any_partition() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        world.network.cut_both("a", "b")
        await asyncio.sleep(1000)
        world.network.heal_all()
        pair.a.call(pair.transport.write, b"still here")
        await asyncio.sleep(1)
        return pair.far.heard

    assert run(1, main).result == b"still here"


def test_a_wire_of_its_own_for_one_direction() -> None:
    async def main(world: World) -> Any:
        plain(world)
        world.network.wires["b", "a"] = Wire(latency=3.0, jitter=0.0)
        task = asyncio.create_task(connected(world, far=RecordingProtocol(lambda data: data)))
        await asyncio.sleep(5)
        pair = await task
        began = world.loop.time()
        pair.a.call(pair.transport.write, b"ping")
        await asyncio.sleep(5)
        return pair.far.times[0] - began, pair.near.times[0] - began

    assert run(1, main).result == (pytest.approx(0.01, abs=1e-3), pytest.approx(3.01, abs=1e-3))


# --- one connection


def test_a_reset_on_the_way() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        pair.way.reset()
        await asyncio.sleep(1)
        assert not world.network.connections
        return pair.near.problem, pair.far.problem

    near, far = run(1, main).result
    assert isinstance(near, ConnectionResetError)
    assert isinstance(far, ConnectionResetError)


@pytest.mark.parametrize("act", Act)
def test_a_cut_in_the_middle_of_a_frame(act: Act) -> None:
    async def main(world: World) -> Any:
        plain(world, retransmit_seconds=20.0)
        pair = await connected(world)
        pair.way.forward.trip = Trip(act, 60, seconds=5.0)
        began = world.loop.time()
        pair.a.call(pair.transport.write, b"x" * 100)
        await asyncio.sleep(2)
        heard = len(pair.far.heard)
        await asyncio.sleep(50)
        lost = None if pair.near.lost_at is None else pair.near.lost_at - began
        return (
            heard,
            len(pair.far.heard),
            pair.far.events,
            type(pair.far.problem),
            type(pair.near.problem),
            lost,
        )

    nothing, reset = type(None), ConnectionResetError
    soon, patience = pytest.approx(0.02, abs=0.01), pytest.approx(20.01, abs=0.02)
    assert (
        run(1, main).result
        == {
            Act.FIN: (60, 60, ["made", "eof", "lost"], nothing, reset, soon),
            Act.RST: (60, 60, ["made", "lost"], reset, reset, soon),
            Act.STALL: (60, 100, ["made"], nothing, nothing, None),
            Act.SILENCE: (60, 60, ["made"], nothing, TimeoutError, patience),
        }[act]
    )


def test_a_bit_flips() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        pair.way.forward.mangle = lambda data: bytes([data[0] ^ 1]) + bytes(data[1:])
        pair.a.call(pair.transport.write, b"abc")
        await asyncio.sleep(1)
        return pair.far.heard

    assert run(1, main).result == b"`bc"


def test_connections_of_a_host() -> None:
    async def main(world: World) -> Any:
        await listen(world)
        await listen(world, "c")
        await dial(world)
        await again(world)
        await again(world, "c")
        network = world.network
        return [len(list(network.between(*names))) for names in (("a",), ("a", "b"), ("b", "a"), ("b", "c"))]

    assert run(1, main).result == [3, 2, 2, 0]
