"""One connection against a scripted broker: pipelining, deadlines, tombstones, throttling, the end."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.errors import (
    CorruptDataError,
    DeadlineError,
    InvalidFrameError,
    PortClosedError,
    ProtocolDecodeError,
)
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.find_coordinator_response import FindCoordinatorResponse
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from kclient.generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kclient.network.connection import FIRST_CORRELATION_ID, Connection
from tests.network.support import connect
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker

Body = Callable[[ScriptedBroker, Connection], Awaitable[None]]


def run(*script: On, body: Body, **settings: Any) -> None:
    """Run a test's body with a peer and a ready connection to it."""

    async def main() -> None:
        async with ScriptedBroker(*script) as peer:
            connection = await connect(peer, **settings)
            try:
                await body(peer, connection)
            finally:
                connection.close()
                await connection.wait_closed()

    asyncio.run(main())


async def beat(connection: Connection, member: str = "", *, seconds: float = 5.0, version: int = 4) -> Any:
    """Send a heartbeat whose member id says which one it is."""
    deadline = asyncio.get_running_loop().time() + seconds
    return await connection.request(HeartbeatRequest(member_id=member), version, deadline)


def echo(request: HeartbeatRequest) -> HeartbeatResponse:
    """A response that identifies its request."""
    return HeartbeatResponse(error_code=int(request.member_id))


@pytest.mark.spec("B.4.2", "I-16")
def test_pipelined_requests_get_their_own_responses() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        responses = await asyncio.gather(*(beat(connection, str(n)) for n in range(30)))
        assert [response.error_code for response in responses] == list(range(30))
        assert [seen.message.member_id for seen in peer.requests] == [str(n) for n in range(30)]
        assert len(peer.connections) == 1

    run(*(On("HeartbeatRequest", echo) for _ in range(30)), body=body)


@pytest.mark.spec("B.4.2")
def test_the_hundred_and_first_request_waits_for_a_response() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        beats = [asyncio.ensure_future(beat(connection, str(n))) for n in range(101)]
        await asyncio.sleep(0.05)
        assert connection.in_flight == 100
        assert not any(one.done() for one in beats)
        assert [(await one).error_code for one in beats] == list(range(101))

    run(*(On("HeartbeatRequest", echo, delay=0.2 if n == 0 else 0.0) for n in range(101)), body=body)


@pytest.mark.spec("H-07", "I-16")
def test_the_response_to_a_cancelled_request_is_not_taken_for_the_next_one() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        cancelled = asyncio.ensure_future(beat(connection, "1"))
        await asyncio.sleep(0.02)
        cancelled.cancel()
        response = await beat(connection, "2")
        assert response.error_code == 2
        assert cancelled.cancelled()
        assert connection.in_flight == 0
        assert connection.ready

    run(On("HeartbeatRequest", echo, delay=0.1), On("HeartbeatRequest", echo), body=body)


def answer_bytes(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">iib", 5 + len(body), correlation_id, 0) + body


@pytest.mark.spec("B.4.2", "H-07")
@pytest.mark.parametrize("correlation_id", [0, -1, 7, FIRST_CORRELATION_ID])
def test_a_wrong_correlation_id_closes_the_connection(correlation_id: int) -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        with pytest.raises(PortClosedError, match="a response out of turn"):
            await beat(connection)
        assert isinstance(connection.reason, CorruptDataError)
        assert str(correlation_id) in str(connection.reason)
        with pytest.raises(PortClosedError):
            await beat(connection)

    run(On("HeartbeatRequest", raw=answer_bytes(correlation_id, bytes(7))), body=body)


@pytest.mark.spec("H-07")
def test_an_unrequested_response_closes_the_connection() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection, "0")
        for _ in range(100):
            if connection.closed:
                break
            await asyncio.sleep(0.01)
        assert isinstance(connection.reason, CorruptDataError)

    run(On("HeartbeatRequest", HeartbeatResponse(), raw=answer_bytes(99, bytes(7))), body=body)


@pytest.mark.spec("B.4.9", "D-10")
def test_a_response_that_never_comes_closes_the_connection_and_fails_everything_on_it() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        late = asyncio.ensure_future(beat(connection, "1", seconds=0.2))
        behind = asyncio.ensure_future(beat(connection, "2", seconds=60))
        with within(2) as elapsed:
            for request in (late, behind):
                with pytest.raises(PortClosedError, match="no response to Heartbeat in time") as caught:
                    await request
                assert caught.value.retriable
        assert elapsed.seconds > 0.15
        assert connection.closed

    run(On("HeartbeatRequest"), body=body)


@pytest.mark.spec("B.4.9")
def test_even_a_cancelled_request_must_be_answered_in_time() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        cancelled = asyncio.ensure_future(beat(connection, seconds=0.2))
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.wait_for(connection.wait_closed(), 2)
        assert connection.closed

    run(On("HeartbeatRequest"), body=body)


@pytest.mark.spec("B.4.8")
def test_a_connection_that_the_peer_closes_fails_what_is_in_flight_and_all_that_follows() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        first = asyncio.ensure_future(beat(connection, "1"))
        second = asyncio.ensure_future(beat(connection, "2"))
        for request in (first, second):
            with pytest.raises(PortClosedError, match="closed by the peer"):
                await request
        with within(2), pytest.raises(PortClosedError, match="Heartbeat was to be sent"):
            await beat(connection, seconds=60)

    run(On("HeartbeatRequest", close=True), body=body)


@pytest.mark.spec("H-01", "B.4.14")
def test_a_frame_above_the_maximum_is_reported_by_its_size() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        with pytest.raises(PortClosedError, match="2000001 bytes"):
            await beat(connection)
        assert isinstance(connection.reason, InvalidFrameError)
        assert (connection.reason.size, connection.reason.limit) == (2_000_001, 2_000_000)

    run(
        On("HeartbeatRequest", raw=struct.pack(">i", 2_000_001)),
        body=body,
        max_frame_bytes=2_000_000,
    )


@pytest.mark.spec("H-06")
def test_bytes_after_a_response_are_tolerated_and_counted() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        response = await beat(connection, version=3)
        assert response.error_code == 27
        assert connection.trailing_bytes == 3

    second = FIRST_CORRELATION_ID + 1
    whole = struct.pack(">iiih", 13, second, 0, 27) + b"abc"
    run(On("HeartbeatRequest", raw=whole), body=body)


def test_a_response_that_cannot_be_read_is_a_typed_error_and_the_end_of_the_connection() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        with pytest.raises(ProtocolDecodeError) as caught:
            await beat(connection, version=3)
        assert caught.value.message == "HeartbeatResponse"
        assert connection.closed

    second = FIRST_CORRELATION_ID + 1
    run(On("HeartbeatRequest", raw=struct.pack(">iii", 8, second, 0)), body=body)


@pytest.mark.spec("B.4.6")
def test_nothing_is_sent_while_the_broker_throttles() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        assert connection.throttled
        await beat(connection)
        first, second = peer.requests
        assert second.at - first.at >= 0.29

    throttled = HeartbeatResponse(throttle_time_ms=300)
    run(On("HeartbeatRequest", throttled), On("HeartbeatRequest", HeartbeatResponse()), body=body)


@pytest.mark.spec("B.4.6")
def test_old_versions_were_delayed_by_the_broker_and_do_not_throttle() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection, version=1)
        assert not connection.throttled

    run(On("HeartbeatRequest", HeartbeatResponse(throttle_time_ms=60_000)), body=body)


@pytest.mark.spec("B.4.6")
def test_an_api_that_never_mutes_the_client_does_not_throttle() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        deadline = asyncio.get_running_loop().time() + 5
        await connection.request(OffsetForLeaderEpochRequest(), 4, deadline)
        assert not connection.throttled

    response = OffsetForLeaderEpochResponse(throttle_time_ms=60_000)
    run(On("OffsetForLeaderEpochRequest", response), body=body)


@pytest.mark.spec("H-25", "B.4.6")
@pytest.mark.parametrize("throttle_time_ms", [-1, -(2**31), 2**31 - 1])
def test_an_absurd_throttle_time_is_clamped(throttle_time_ms: int) -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        with within(2):
            await beat(connection, seconds=5)

    throttled = HeartbeatResponse(throttle_time_ms=throttle_time_ms)
    run(
        On("HeartbeatRequest", throttled),
        On("HeartbeatRequest", HeartbeatResponse()),
        body=body,
        request_timeout=0.5,
    )


def test_a_deadline_that_passes_while_throttled_costs_the_request_and_not_the_connection() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        with pytest.raises(DeadlineError) as caught:
            await beat(connection, seconds=0.05)
        assert caught.value.waiting_for
        assert connection.ready

    run(On("HeartbeatRequest", HeartbeatResponse(throttle_time_ms=2000)), body=body)


@pytest.mark.spec("I-08", "B.4.6")
def test_requests_that_wait_for_their_turn_go_out_in_the_order_in_which_they_came() -> None:
    """A later commit that overtakes an earlier one would take the committed offset back."""

    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        order = [str(number) for number in range(20)]
        await asyncio.gather(*(beat(connection, member) for member in order))
        assert [seen.message.member_id for seen in peer.requests[1:]] == order

    run(
        On("HeartbeatRequest", HeartbeatResponse(throttle_time_ms=50)),
        *[On("HeartbeatRequest", HeartbeatResponse()) for _ in range(20)],
        body=body,
    )


def test_an_unused_connection_is_closed_without_a_reason() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        await asyncio.wait_for(connection.wait_closed(), 2)
        assert connection.closed
        assert connection.reason is None

    run(On("HeartbeatRequest", HeartbeatResponse()), body=body, idle_timeout=0.1)


def test_a_connection_that_waits_for_a_response_is_not_unused() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        await beat(connection)
        assert connection.ready

    run(On("HeartbeatRequest", HeartbeatResponse(), delay=0.3), body=body, idle_timeout=0.05)


@pytest.mark.spec("S1-26")
def test_the_request_header_carries_client_id_key_version_and_correlation_id() -> None:
    async def main() -> bytes:
        read = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            # ApiVersions 4, header 0: no error, one API (10, versions 0 to 3), no throttle, no tags
            writer.write(answer_bytes(0x0D0A0D0A, b"\0\x02\0\x0a\0\0\0\x03\0\0\0\0\0\0")[:8])
            writer.write(b"\0\0\x02\0\x0a\0\0\0\x03\0\0\0\0\0\0")
            read.set_result(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        peer = ScriptedBroker()
        peer.port = server.sockets[0].getsockname()[1]
        connection = await connect(peer)
        deadline = asyncio.get_running_loop().time() + 5
        with pytest.raises(PortClosedError):
            await connection.request(FindCoordinatorRequest(key="g"), 0, deadline)
        server.close()
        frame: bytes = await read
        return frame

    assert asyncio.run(main()) == b"\0\x0a\0\0\x0d\x0a\x0d\x0b\0\x06tester\0\x01g"


def test_closing_reports_the_owner_once_and_fails_what_waits() -> None:
    async def body(peer: ScriptedBroker, connection: Connection) -> None:
        waiting = asyncio.ensure_future(
            connection.request(FindCoordinatorRequest(), 0, asyncio.get_running_loop().time() + 5)
        )
        await asyncio.sleep(0.02)
        connection.close()
        connection.close()
        with pytest.raises(PortClosedError, match="closed by kclient"):
            await waiting

    run(On("FindCoordinatorRequest", FindCoordinatorResponse(), delay=1), body=body)


@pytest.mark.spec("H-03", "I-23")
def test_whatever_bytes_answer_a_request_it_ends_with_a_typed_error_or_a_response() -> None:
    rng = random.Random(20131)
    bodies = [rng.randbytes(rng.randrange(40)) for _ in range(60)]

    async def main() -> None:
        second = FIRST_CORRELATION_ID + 1
        for body in bodies:
            raw = struct.pack(">ii", 4 + len(body), second) + body
            async with ScriptedBroker(On("FetchRequest", raw=raw)) as peer:
                connection = await connect(peer)
                deadline = asyncio.get_running_loop().time() + 2
                try:
                    await connection.request(FetchRequest(), 12, deadline)
                except ProtocolDecodeError:
                    assert connection.closed
                connection.close()

    asyncio.run(main())
