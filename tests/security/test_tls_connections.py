"""Each way in which TLS fails, on real loopback sockets: its own error, cause and cure, and no storm of attempts."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import socket
import ssl
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.config import Config, load
from kclient.errors import (
    CertificateError,
    ConnectError,
    HostnameMismatchError,
    KclientError,
    PeerDoesNotSpeakTlsError,
    PeerSpeaksTlsError,
    PortClosedError,
    TlsError,
)
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.network import broker
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.security import Secret
from kclient.security.tls import Tls, TlsOptions
from tests.network.support import connect
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker
from tests.security.certificates import Authority

AUTHORITY = Authority()
LOCALHOST = AUTHORITY.issue("localhost", "127.0.0.1")
DAY = datetime.timedelta(days=1)


def config(address: str, **keys: Any) -> Config:
    given = {"security_protocol": "SSL", "ssl_truststore_certificates": AUTHORITY.pem, **keys}
    return load({"bootstrap_servers": address, "client_id": "tester", **given})


async def start(config: Config) -> None:
    """Find the cluster, or raise what a user's first call would."""
    cluster = Cluster(config, Runtime())
    try:
        async with asyncio.timeout(5):
            await cluster.start()
    finally:
        await cluster.close(1.0)


async def failure(config: Config) -> ConnectError:
    """The error of a start that fails, within a second."""
    with within(1.5), pytest.raises(ConnectError) as caught:
        await start(config)
    return caught.value


@contextlib.asynccontextmanager
async def listener(
    handle: Callable[..., Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextlib.contextmanager
def shaking_hands(context: ssl.SSLContext) -> Iterator[str]:
    """A server that sends an alert when a handshake fails, as Java's does and asyncio's does not; it never responds."""

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                with accepted, contextlib.suppress(OSError):
                    accepted.settimeout(1.0)
                    with context.wrap_socket(accepted, server_side=True) as connection:
                        connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=[listening])
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.spec("B.4.3", "B.1.2")
def test_the_cluster_is_found_over_tls_and_the_name_is_verified(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"orders": 1}, tls=LOCALHOST.server_context(tmp_path)) as peer:
            await start(config(peer.address))
            await start(config(f"localhost:{peer.port}"))

    asyncio.run(main())


@pytest.mark.spec("U-17", "H-24")
def test_an_authority_that_is_not_trusted_gives_issuer_names_expiry_and_the_file_used(tmp_path: Path) -> None:
    other = Authority("Another Authority").write_pem(tmp_path / "other.pem")

    async def main() -> None:
        async with ScriptedBroker(tls=LOCALHOST.server_context(tmp_path)) as peer:
            error = await failure(
                config(peer.address, ssl_truststore_certificates=None, ssl_truststore_location=str(other))
            )
            assert isinstance(error, CertificateError)
            expiry = f"{LOCALHOST.certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
            assert (error.issuer, error.names, error.not_after) == (
                "CN=Test Authority",
                ("localhost", "127.0.0.1"),
                expiry,
            )
            assert (error.authorities, error.stage, error.retriable) == (str(other), "tls", False)
            for part in (
                "CN=Test Authority",
                "localhost, 127.0.0.1",
                expiry,
                str(other),
                "ssl_truststore_location",
            ):
                assert part in error.text

    asyncio.run(main())


@pytest.mark.spec("U-17", "D-80")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_certificate_for_another_name_gives_its_names(tmp_path: Path, host: str) -> None:
    context = AUTHORITY.issue("kafka.example", "10.0.0.1").server_context(tmp_path)

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={}) as peer:
            error = await failure(config(f"{host}:{peer.port}"))
            assert isinstance(error, HostnameMismatchError)
            assert error.names == ("kafka.example", "10.0.0.1")
            assert "kafka.example, 10.0.0.1" in error.text
            assert repr(host) in error.text

    asyncio.run(main())


@pytest.mark.spec("U-17", "D-80")
def test_a_common_name_is_no_name_of_a_host(tmp_path: Path) -> None:
    context = AUTHORITY.issue(subject="localhost").server_context(tmp_path)

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={}) as peer:
            error = await failure(config(f"localhost:{peer.port}"))
            assert isinstance(error, HostnameMismatchError)
            assert error.names == ()
            assert "'localhost'" in error.text

    asyncio.run(main())


@pytest.mark.spec("D-80", "B.1.2")
def test_the_empty_algorithm_is_warned_of_at_each_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = AUTHORITY.issue("kafka.example").server_context(tmp_path)

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={"orders": 1}) as peer:
            with caplog.at_level(logging.WARNING, "kclient.tls"):
                await start(config(peer.address, ssl_endpoint_identification_algorithm=""))
            warnings = [
                record for record in caplog.records if "host name is not verified" in record.getMessage()
            ]
            assert len(warnings) == len(peer.connections) == 2

    asyncio.run(main())


@pytest.mark.spec("D-80", "B.1.2")
def test_the_empty_algorithm_lets_another_name_pass_but_not_another_authority(tmp_path: Path) -> None:
    context = AUTHORITY.issue("kafka.example").server_context(tmp_path)

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={"orders": 1}) as peer:
            await start(config(peer.address, ssl_endpoint_identification_algorithm=""))
            with pytest.raises(CertificateError):
                await start(
                    config(
                        peer.address,
                        ssl_endpoint_identification_algorithm="",
                        ssl_truststore_certificates=Authority("Another").pem,
                    )
                )

    asyncio.run(main())


@pytest.mark.spec("H-24")
@pytest.mark.parametrize(("since", "until"), [(-2 * DAY, -DAY), (DAY, 2 * DAY)])
def test_a_certificate_outside_its_time_says_when_it_holds(
    tmp_path: Path, since: datetime.timedelta, until: datetime.timedelta
) -> None:
    issued = AUTHORITY.issue("localhost", "127.0.0.1", since=since, until=until)

    async def main() -> None:
        async with ScriptedBroker(tls=issued.server_context(tmp_path)) as peer:
            error = await failure(config(peer.address))
            assert isinstance(error, CertificateError)
            assert "Renew the broker's certificate, or set the clock" in error.text
            assert f"to {issued.certificate.not_valid_after_utc:%Y-%m-%d}" in error.text

    asyncio.run(main())


@pytest.mark.spec("H-24", "U-17")
def test_a_refused_certificate_costs_the_broker_a_few_connections_and_no_more(tmp_path: Path) -> None:
    seen: list[object] = []

    async def main() -> None:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(LOCALHOST.write_pem(tmp_path / "server.pem"))
        server.sni_callback = lambda *found: seen.append(found)
        async with ScriptedBroker(tls=server) as peer:
            cluster = Cluster(config(peer.address, ssl_truststore_certificates=Authority("B").pem), Runtime())
            errors = []
            for _ in range(200):
                try:
                    await cluster.start()
                except KclientError as exc:
                    errors.append(exc)
            await cluster.close(1.0)
            assert [type(error) for error in errors] == [CertificateError] * 200

    asyncio.run(main())
    assert len(seen) == 2  # the attempt, and the look at the certificate


@pytest.mark.spec("H-24")
def test_a_broker_whose_certificate_is_for_another_name_is_not_tried_again_and_again(tmp_path: Path) -> None:
    """The bootstrap address is fine and the advertised one is not, so there is a way to start again each time."""
    seen: list[object] = []
    context = AUTHORITY.issue("localhost").server_context(tmp_path)
    context.sni_callback = lambda *found: seen.append(found)

    async def main() -> None:
        async with ScriptedBroker(topics={"orders": 1}, tls=context) as peer:
            cluster = Cluster(config(f"localhost:{peer.port}", retry_backoff_ms=1), Runtime())
            for _ in range(100):
                with pytest.raises(HostnameMismatchError):  # the broker is advertised as 127.0.0.1
                    await cluster.start()
                cluster._rebootstrap("a test wants it")
            await cluster.close(1.0)

    asyncio.run(main())
    refused = [server_name for _, server_name, *_ in seen if server_name is None]  # SNI has no IP addresses
    assert len(refused) == 2  # the attempt, and the look at the certificate


@pytest.mark.spec("U-17", "H-24")
def test_tls_to_a_kafka_without_it_says_so() -> None:
    async def kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Closes at a size that no request has, as Kafka does, and leaves the rest to the scripted peer."""
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > 100_000_000:
            writer.close()
            return
        there_reader, there = await asyncio.open_connection(plain.host, plain.port)
        there.write(size.to_bytes(4, "big") + await reader.readexactly(size))
        writer.write(await there_reader.read(65_536))
        await writer.drain()
        there.close()
        writer.close()

    async def main() -> None:
        nonlocal plain
        async with ScriptedBroker() as plain, listener(kafka) as address:
            error = await failure(config(address))
            assert isinstance(error, PeerDoesNotSpeakTlsError)
            assert "security_protocol to PLAINTEXT" in error.text

    plain: ScriptedBroker
    asyncio.run(main())


@pytest.mark.spec("H-24")
def test_tls_to_a_web_server_without_it_says_so() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with listener(web) as address:
            assert isinstance(await failure(config(address)), PeerDoesNotSpeakTlsError)

    asyncio.run(main())


@pytest.mark.spec("H-24")
def test_a_peer_that_closes_during_the_handshake_may_come_back() -> None:
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def main() -> None:
        async with listener(gone) as address:
            error = await failure(config(address))
            assert (type(error), error.stage, error.retriable) == (PortClosedError, "tls", True)

    asyncio.run(main())


@pytest.mark.spec("H-24")
def test_a_peer_that_says_nothing_during_the_handshake_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def main() -> None:
        async with listener(silent) as address:
            error = await failure(config(address, socket_connection_setup_timeout_ms=300))
            assert (type(error), error.stage) == (PortClosedError, "tls")
            assert "sent no TLS" in error.text

    asyncio.run(main())


@pytest.mark.spec("H-24")
def test_an_end_without_close_notify_fails_what_is_in_flight_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        asked = asyncio.Event()
        never = On("HeartbeatRequest", check=lambda request: asked.set() or True)
        async with ScriptedBroker(never, tls=LOCALHOST.server_context(tmp_path)) as peer:
            tls = Tls(TlsOptions(trusted=Secret(AUTHORITY.pem)))
            connection = await connect(peer, tls=tls)
            beat = asyncio.ensure_future(
                connection.request(HeartbeatRequest(), 4, connection._loop.time() + 30)
            )
            await asked.wait()
            raw = peer.connections[0].get_extra_info("socket")
            with socket.socket(fileno=os.dup(raw.fileno())) as bare:
                bare.shutdown(socket.SHUT_WR)
            with pytest.raises(PortClosedError, match="waiting for the response to Heartbeat"):
                async with asyncio.timeout(2):
                    await beat

    asyncio.run(main())


@pytest.mark.spec("U-17")
def test_plain_text_to_a_tls_port_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedBroker(tls=LOCALHOST.server_context(tmp_path)) as peer:
            plain = load({"bootstrap_servers": peer.address})
            error = await failure(plain)
            assert isinstance(error, PeerSpeaksTlsError)
            assert "security_protocol to SSL" in error.text

    asyncio.run(main())


@pytest.mark.spec("H-24", "B.1.2")
def test_a_server_that_speaks_only_what_is_old_is_refused(tmp_path: Path) -> None:
    context = LOCALHOST.server_context(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with shaking_hands(context) as address:
        error = asyncio.run(failure(config(address)))
    assert type(error) is TlsError
    assert "have no TLS version in common" in error.text


@pytest.mark.spec("B.1.2")
def test_only_the_enabled_version_is_spoken(tmp_path: Path) -> None:
    context = LOCALHOST.server_context(tmp_path)
    context.minimum_version = ssl.TLSVersion.TLSv1_3

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={"orders": 1}) as peer:
            await start(config(peer.address, ssl_enabled_protocols="TLSv1.3"))

    asyncio.run(main())
    with shaking_hands(context) as address:
        for keys in ({"ssl_enabled_protocols": "TLSv1.2"}, {"ssl_protocol": "TLSv1.2"}):
            assert "have no TLS version in common" in asyncio.run(failure(config(address, **keys))).text


@pytest.mark.spec("B.1.2", "U-17")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_that_the_broker_wants_is_shown_and_its_lack_is_reported(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    context = LOCALHOST.server_context(tmp_path, trusted=AUTHORITY.pem)
    context.maximum_version = version
    ours = AUTHORITY.issue("client", subject="client").write_pem(tmp_path / "client.pem")
    stranger = Authority("Stranger").issue("client", subject="client").write_pem(tmp_path / "stranger.pem")

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={"orders": 1}) as peer:
            await start(config(peer.address, ssl_keystore_location=str(ours)))

    asyncio.run(main())
    with shaking_hands(context) as address:
        without = asyncio.run(failure(config(address)))
        refused = asyncio.run(failure(config(address, ssl_keystore_location=str(stranger))))
    assert (type(without), type(refused)) == (TlsError, TlsError)
    assert "requires a client certificate" in without.text
    assert "does not accept the client's certificate" in refused.text


@pytest.mark.spec("H-24")
def test_verification_is_off_only_by_name_and_each_connection_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = Authority("Nobody").issue("elsewhere").server_context(tmp_path)

    async def main() -> None:
        async with ScriptedBroker(tls=context, topics={"orders": 1}) as peer:
            with caplog.at_level(logging.WARNING, "kclient.tls"):
                await start(config(peer.address, tls_insecure_skip_verify=True))
            warnings = [record for record in caplog.records if "is not verified" in record.getMessage()]
            assert len(warnings) == len(peer.connections) == 2  # bootstrap, then the broker itself

    asyncio.run(main())


@pytest.mark.spec("U-17", "B.1.2")
def test_a_ready_context_is_used_as_it_is(tmp_path: Path) -> None:
    ready = ssl.create_default_context(cadata=AUTHORITY.pem)

    async def main() -> None:
        async with ScriptedBroker(tls=LOCALHOST.server_context(tmp_path), topics={"orders": 1}) as peer:
            here = {"ssl_truststore_certificates": None}
            await start(config(peer.address, ssl_context=ready, **here))
            stranger = ssl.create_default_context(cadata=Authority("Another").pem)
            error = await failure(config(peer.address, ssl_context=stranger, **here))
            assert isinstance(error, CertificateError)
            assert error.authorities == "the authorities of the given ssl_context"

    asyncio.run(main())


@pytest.mark.spec("B.1.2")
def test_a_trust_store_that_changes_is_used_by_the_next_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "REFUSED_SECONDS", 0.05)
    path = Authority("Old").write_pem(tmp_path / "ca.pem")

    async def main() -> None:
        async with ScriptedBroker(tls=LOCALHOST.server_context(tmp_path), topics={"orders": 1}) as peer:
            keys = {"ssl_truststore_certificates": None, "ssl_truststore_location": str(path)}
            cluster = Cluster(config(peer.address, **keys), Runtime())
            with pytest.raises(CertificateError):
                await cluster.start()
            AUTHORITY.write_pem(path)
            await asyncio.sleep(0.1)
            await cluster.start()
            await cluster.close(1.0)

    asyncio.run(main())
