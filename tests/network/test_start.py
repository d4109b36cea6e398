"""Errors of `start` if the cluster cannot be found: one error class per cause, each within a second."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest

from kclient.config import Config
from kclient.errors import (
    AdvertisedListenerError,
    ConfigError,
    ConnectError,
    KclientError,
    NameResolutionError,
    PeerSpeaksTlsError,
    PortClosedError,
    VersionError,
)
from kclient.network.cluster import Cluster
from kclient.network.connect import canonical_servers
from kclient.network.peer import Peer, parse_server
from kclient.runtime import Address, Runtime
from tests.default_responses import api_versions
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker
from tests.waiting import until


@attrs.define
class Names(Runtime):
    """A runtime whose resolver knows some names by heart; the others do not resolve."""

    names: dict[str, list[str]] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)

    async def resolve(self, host: str, port: int) -> list[Address]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return [Address(ip, port) for ip in self.names[host]]


LOCAL = {"127.0.0.1": ["127.0.0.1"], "localhost": ["127.0.0.1"]}


def closed_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def failure(
    *servers: str, runtime: Runtime | None = None, within: float = 1.0, **config: int
) -> KclientError:
    """The error of `start`, and the proof that it came in time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    cluster = Cluster(Config(bootstrap_servers=servers, **config), runtime or Runtime())  # type: ignore[arg-type]
    with pytest.raises(KclientError) as caught:
        await cluster.start()
    assert loop.time() - began < within
    return caught.value


def start_fails(*servers: str, runtime: Runtime | None = None) -> KclientError:
    return asyncio.run(failure(*servers, runtime=runtime))


@asynccontextmanager
async def answering(reply: bytes | None) -> AsyncIterator[str]:
    """A server that reads a little, says `reply` and closes; with None it never says anything."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.read(16)
        if reply is not None:
            writer.write(reply)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()


async def failure_with(reply: bytes | None, **config: int) -> KclientError:
    async with answering(reply) as address:
        return await failure(address, **config)


@pytest.mark.spec("U-16")
def test_nothing_listens() -> None:
    port = closed_port()
    error = start_fails(f"127.0.0.1:{port}")
    assert isinstance(error, PortClosedError)
    assert (error.stage, error.host, error.port) == ("tcp", "127.0.0.1", port)
    assert error.retriable
    assert "Nothing listens" in str(error)


@pytest.mark.spec("U-16")
def test_the_name_does_not_resolve() -> None:
    error = start_fails("kafka.invalid:9092", runtime=Names())
    assert isinstance(error, NameResolutionError)
    assert (error.stage, error.host, error.port) == ("dns", "kafka.invalid", 9092)


@pytest.mark.parametrize("host", ["x" * 64, "a..b", "xn--" + "y" * 300])
def test_a_name_that_cannot_be_one_does_not_resolve_either(host: str) -> None:
    assert isinstance(start_fails(f"{host}:9092"), NameResolutionError)


@pytest.mark.spec("U-16", "H-24")
@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH-"),
        (b"-ERR unknown command\r\n", "-ERR"),
        (b"220 mail.example.org ESMTP\r\n", "220 "),
    ],
)
def test_the_peer_is_not_kafka(reply: bytes, says: str) -> None:
    error = asyncio.run(failure_with(reply))
    assert isinstance(error, VersionError)
    assert error.stage == "versions"
    assert not error.retriable
    assert "not Kafka" in str(error)
    assert says in str(error)


@pytest.mark.spec("H-07", "H-08")
def test_a_first_response_with_a_wrong_correlation_id_is_a_connect_error() -> None:
    error = asyncio.run(failure_with(b"\0\0\0\x08\0\0\0\x05\0\0\0\0"))
    assert isinstance(error, VersionError)
    assert "correlation id 5" in str(error)


def test_a_server_that_waits_for_a_whole_line_is_found_out_too() -> None:
    """Our first request contains an empty line, so even an HTTP server of the patient kind answers it."""

    async def main() -> KclientError:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            return await failure(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")

    assert isinstance(asyncio.run(main()), VersionError)


@pytest.mark.spec("U-17", "H-24")
@pytest.mark.parametrize("record", [b"\x15\x03\x03\0\x02\x02\x50", b"\x15\x03\x01\0\x02\x02\x46"])
def test_the_peer_answers_with_a_tls_alert(record: bytes) -> None:
    error = asyncio.run(failure_with(record))
    assert isinstance(error, PeerSpeaksTlsError)
    assert not error.retriable


@pytest.mark.spec("U-17", "H-24")
def test_a_tls_server_that_closes_without_a_word_is_distinguished_from_a_broken_one() -> None:
    # Without a certificate: enough to speak TLS, and to refuse.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def serve(listener: socket.socket) -> None:
        for _ in range(2):  # the plain-text connection, then the question whether this is TLS
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ssl.SSLError):
                context.wrap_socket(connection, server_side=True)

    async def main(listener: socket.socket) -> KclientError:
        serving = asyncio.get_running_loop().run_in_executor(None, serve, listener)
        error = await failure(f"127.0.0.1:{listener.getsockname()[1]}")
        await serving
        return error

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        assert isinstance(asyncio.run(main(listener)), PeerSpeaksTlsError)


def test_a_peer_that_closes_at_once_is_no_tls_server() -> None:
    error = asyncio.run(failure_with(b""))
    assert isinstance(error, PortClosedError)
    assert error.stage == "versions"
    assert "without answering" in str(error)


@pytest.mark.spec("B.4.10")
def test_a_peer_that_says_nothing_is_given_up_after_the_set_up_timeout() -> None:
    limit = {
        "socket_connection_setup_timeout_ms": 200,
        "socket_connection_setup_timeout_max_ms": 200,
    }
    error = asyncio.run(failure_with(None, **limit))
    assert isinstance(error, PortClosedError)
    assert "sent nothing" in str(error)


@pytest.mark.spec("U-16")
def test_an_advertised_name_that_does_not_resolve_is_reported_with_the_way_there() -> None:
    async def main() -> tuple[KclientError, str]:
        async with ScriptedBroker(topics={}) as peer:
            abroad = ScriptedBroker(node_id=1)
            abroad.host, abroad.port = "kafka", 9092
            peer.brokers = [abroad]
            return await failure(peer.address, runtime=Names(names=LOCAL)), peer.address

    error, via = asyncio.run(main())
    assert isinstance(error, AdvertisedListenerError)
    assert (error.node_id, error.advertised, error.via, error.stage) == (1, "kafka:9092", via, "dns")
    assert "advertised.listeners" in str(error)


@pytest.mark.spec("U-16")
def test_an_advertised_port_where_nothing_listens_is_reported_too() -> None:
    async def main() -> KclientError:
        async with ScriptedBroker(topics={}) as peer:
            down = ScriptedBroker(node_id=1)
            down.port = closed_port()
            peer.brokers = [down]
            return await failure(peer.address)

    error = asyncio.run(main())
    assert isinstance(error, AdvertisedListenerError)
    assert error.stage == "tcp"


def test_one_broker_that_works_is_enough() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            down = ScriptedBroker(node_id=1)
            down.port = closed_port()
            peer.brokers = [down, peer]
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            await cluster.start()
            assert sorted(cluster.metadata.brokers) == [0, 1]
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.4.11")
def test_every_bootstrap_server_is_tried() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            servers = (f"127.0.0.1:{closed_port()}", "nowhere.invalid:9092", peer.address)
            for _ in range(5):  # the first server is drawn
                cluster = Cluster(Config(bootstrap_servers=servers), Names(names=LOCAL))
                await cluster.start()
                await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.4.11")
def test_a_silent_server_does_not_hold_up_the_next_one() -> None:
    async def main() -> None:
        async with answering(None) as silent, ScriptedBroker(topics={}) as peer:
            for _ in range(3):
                with within(1):
                    cluster = Cluster(Config(bootstrap_servers=(silent, peer.address)), Runtime())
                    await cluster.start()
                await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("I-34")
def test_servers_that_come_second_are_let_go_before_the_brokers_are_connected() -> None:
    async def main() -> None:
        def slow(seconds: float) -> On:
            return On("ApiVersionsRequest", api_versions({}), delay=seconds)

        first, second = ScriptedBroker(slow(0.3), topics={}), ScriptedBroker(slow(0.3), topics={})
        async with first, second, ScriptedBroker(slow(1.0), node_id=1, topics={}) as broker:
            first.brokers = second.brokers = [broker]
            cluster = Cluster(Config(bootstrap_servers=(first.address, second.address)), Runtime())
            starting = asyncio.ensure_future(cluster.start())
            await until(lambda: bool(broker.connections))
            assert (len(first.connections), len(second.connections)) == (1, 1)
            ends = [*first.connections, *second.connections]
            await until(lambda: sum(end.is_closing() for end in ends) == 1)
            assert not starting.done()
            await starting
            await cluster.close(1)

    asyncio.run(main())


def test_when_all_servers_fail_the_error_names_the_others_too() -> None:
    error = start_fails("one.invalid:9092", "two.invalid:9092", runtime=Names())
    assert isinstance(error, NameResolutionError)
    text = str(error) + " ".join(error.__notes__)
    assert "one.invalid" in text
    assert "two.invalid" in text


@pytest.mark.spec("B.4.11", "U-09")
def test_every_address_of_a_name_is_tried() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            names = {**LOCAL, "many": ["127.0.0.2", "127.0.0.3", "127.0.0.1"]}
            cluster = Cluster(Config(bootstrap_servers=(f"many:{peer.port}",)), Names(names=names))
            await cluster.start()
            await cluster.close(1)

    asyncio.run(main())


def test_metadata_without_brokers_is_asked_again() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            responses = iter([[], [], [peer]])

            def metadata(request: object) -> object:
                peer.brokers = next(responses)
                return standing(request)

            standing = peer.default_responses["MetadataRequest"]
            peer.default_responses["MetadataRequest"] = metadata
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            await cluster.start()
            assert len(peer.of("MetadataRequest")) == 3
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("D-83")
@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("localhost:9092", Peer("localhost", 9092)),
        ("[::1]:9092", Peer("::1", 9092)),
        (" b.example.org:1 ", Peer("b.example.org", 1)),
    ],
)
def test_servers_are_read(text: str, peer: Peer) -> None:
    assert parse_server(text) == peer


@pytest.mark.spec("D-83")
@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", ":9092", "::1:9092", "h:0", "h:65536", "h:9x"]
)
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_server(text)


def test_canonical_names_replace_an_alias() -> None:
    class Canonical(Runtime):
        async def canonical_names(self, host: str, port: int) -> list[str]:
            if host != "alias":
                raise socket.gaierror(-2, "Name or service not known")
            return ["a.example.org", "b.example.org"]

    servers = asyncio.run(canonical_servers([Peer("alias", 1), Peer("gone", 2)], Canonical()))
    assert servers == [Peer("a.example.org", 1), Peer("b.example.org", 1), Peer("gone", 2)]


def test_errors_that_start_raises_can_be_pickled() -> None:
    error = start_fails("kafka.invalid:9092", runtime=Names())
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ConnectError)
    assert (str(again), again.stage, again.host) == (str(error), "dns", "kafka.invalid")
