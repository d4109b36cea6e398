"""Scenario A-16: frames that no broker sends."""

from __future__ import annotations

import logging
import tracemalloc
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.connection import ServerConnection
from kclient.errors import CorruptDataError, InvalidFrameError
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until


def announcing(size: int) -> Any:
    def spoil(connection: ServerConnection, parts: list[bytes | memoryview]) -> None:
        connection.write([size.to_bytes(4, "big", signed=True), *parts])

    return spoil


def answering_another(connection: ServerConnection, parts: list[bytes | memoryview]) -> None:
    whole = b"".join(parts)
    correlation_id = int.from_bytes(whole[:4], "big") + 1
    frame = correlation_id.to_bytes(4, "big") + whole[4:]
    connection.write([len(frame).to_bytes(4, "big"), frame])


@pytest.mark.spec("A-16", "B.4.2", "B.4.14", "B.4.8")
@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (announcing(2**31 - 1), InvalidFrameError, "2147483647 bytes"),
        (announcing(104_857_601), InvalidFrameError, "104857601 bytes"),
        (announcing(-1), InvalidFrameError, "-1 bytes"),
        (answering_another, CorruptDataError, "correlation id"),
    ],
    ids=["2 GiB", "one above the maximum", "negative", "another correlation id"],
)
def test_a16_an_impossible_frame_ends_the_connection_and_costs_nothing_else(
    spoil: Any, error: Any, says: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    send, armed = ServerConnection.send, [False]

    def perhaps_spoilt(connection: ServerConnection, parts: list[bytes | memoryview]) -> None:
        if armed[0]:
            armed[0] = False
            spoil(connection, parts)
        else:
            send(connection, parts)

    monkeypatch.setattr(ServerConnection, "send", perhaps_spoilt)

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            cluster.produce("t", ["0"])
            await read(consumer, 1)
            (hit,) = cluster.state.brokers[1].connections
            tracemalloc.start()
            try:
                armed[0] = True  # the response to the fetch that waits now
                cluster.produce("t", ["1", "2"])
                assert [record.offset for record in await read(consumer, 2)] == [1, 2]
                assert tracemalloc.get_traced_memory()[1] < 8_000_000
            finally:
                tracemalloc.stop()
            await until(lambda: hit not in cluster.state.brokers[1].connections)
            fetches = [one.connection for one in asked(cluster, "Fetch")]
            assert fetches[0] == hit.number
            assert fetches[-1] != hit.number

    with caplog.at_level(logging.WARNING, "kclient"):
        play(scenario)
    (logged,) = [record for record in caplog.records if record.name == "kclient.connection"]
    assert getattr(logged, "error") == error.kc_code  # noqa: B009 – an attribute that logging was given as extra
    assert says in logged.getMessage()
