"""Names are resolved for every attempt, and every address of a name gets its turn."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

import pytest

from kclient.config import Config
from kclient.errors import ConnectError, OpenFilesLimitError, PortClosedError
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.network import errors
from kclient.network.broker import BrokerConnection, ConnectionContext
from kclient.network.cluster import Cluster
from kclient.network.peer import Peer
from tests.network.support import SETTINGS
from tests.network.test_start import Names, failure
from tests.scripted_broker import On, ScriptedBroker

FIRST, SECOND = "127.0.0.1", "127.0.0.2"


def code(number: int) -> On:
    return On("HeartbeatRequest", HeartbeatResponse(error_code=number))


@asynccontextmanager
async def twins(
    first: list[On], second: list[On]
) -> AsyncIterator[tuple[ScriptedBroker, ScriptedBroker, Names]]:
    """One broker, advertised as kafka, that can be reached at two addresses."""
    async with ScriptedBroker(*first, topics={}) as one:
        two = ScriptedBroker(*second, topics={})
        two.host, two.port = SECOND, one.port
        async with two:
            advertised = ScriptedBroker()
            advertised.host, advertised.port = "kafka", one.port
            one.brokers = two.brokers = [advertised]
            yield one, two, Names(names={"kafka": [FIRST, SECOND], FIRST: [FIRST], SECOND: [SECOND]})


async def beat(cluster: Cluster) -> int:
    response = await cluster.request(0, HeartbeatRequest(), purpose="coordinator")
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


USED_UP = """
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import encodings.idna
from kclient import Consumer, KclientError, TopicPartition
with socket.create_server(("127.0.0.1", 0)) as server:
    consumer = Consumer(bootstrap_servers=f"localhost:{server.getsockname()[1]}")
    consumer.assign([TopicPartition("flights", 0)])
    consumer.metrics()
    taken = []
    try:
        while True:
            taken.append(socket.socket())
    except OSError:
        pass
    try:
        consumer.poll(1)
    except KclientError as error:
        for one in taken: one.close()
        print(type(error).__name__, error.stage, error)
"""


class NoSockets(Names):
    """A runtime on a machine without file descriptors."""

    async def connect(self, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENFILE, "Too many open files in system")


def test_a_machine_without_file_descriptors_gets_the_error() -> None:
    problem = asyncio.run(failure("kafka:9092", runtime=NoSockets(names={"kafka": [FIRST]})))
    assert isinstance(problem, OpenFilesLimitError)
    assert (problem.stage, problem.host) == ("tcp", "kafka")
    assert "This machine has too many files and sockets open" in problem.text


def test_a_process_without_file_descriptors_gets_the_error() -> None:
    """It was once a name that is misspelt."""
    done = subprocess.run(
        [sys.executable, "-c", USED_UP], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("OpenFilesLimitError dns bootstrap server localhost:"), done.stderr
    assert "no file descriptor is left for a connection" in done.stdout
    assert "This process has too many files and sockets open" in done.stdout


@pytest.mark.spec("B.4.11")
def test_after_a_lost_connection_the_last_address_comes_last() -> None:
    async def main() -> None:
        drop = On("HeartbeatRequest", close=True)
        async with twins([code(14), drop], [code(15)]) as (one, _, runtime):
            cluster = Cluster(Config(bootstrap_servers=(f"kafka:{one.port}",)), runtime)
            await cluster.start()
            assert await beat(cluster) == 14
            with pytest.raises(PortClosedError):
                await beat(cluster)
            assert await beat(cluster) == 15
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.4.11", "U-09")
def test_a_name_is_resolved_again_for_every_attempt() -> None:
    async def main() -> None:
        async with twins([code(14)], [code(15)]) as (one, _, runtime):
            runtime.names["kafka"] = [FIRST]
            cluster = Cluster(Config(bootstrap_servers=(f"{FIRST}:{one.port}",)), runtime)
            await cluster.start()
            assert await beat(cluster) == 14
            runtime.names["kafka"] = [SECOND]
            one.drop_connections()
            await asyncio.sleep(0.02)
            assert await beat(cluster) == 15
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.4.10")
def test_the_set_up_timeout_doubles_up_to_its_maximum_while_tcp_is_not_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[float] = []
    stages = iter(["versions"] * 3 + ["tcp"] * 3)

    async def fail(peer: Peer, settings: object, runtime: object, timeout: float, on_closed: object) -> None:
        given.append(timeout)
        raise errors.no_response(peer, timeout, next(stages))

    async def main() -> None:
        runtime = Names(names={FIRST: [FIRST]})
        around = ConnectionContext(SETTINGS, runtime, (0, 0), (100, 200), lambda node, problem: None)
        node = BrokerConnection(Peer(FIRST, 9092, 1), "", around)
        for _ in range(6):
            with pytest.raises(ConnectError):
                await node.ready()

    monkeypatch.setattr("kclient.network.broker.open_connection", fail)
    asyncio.run(main())
    connected, unconnected = given[:3], given[3:]
    assert all(0.08 <= timeout <= 0.12 for timeout in connected)
    assert 0.08 <= unconnected[0] <= 0.12
    assert all(0.16 <= timeout <= 0.2 for timeout in unconnected[1:])
