"""asyncio's TLS runs over the memory transport: handshake, data, a refused certificate, an end in mid-handshake."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kclient.simulation.pipe import Act, Trip
from kclient.simulation.world import World, run
from tests.simulation.support import PORT, RecordingBufferedProtocol, RecordingProtocol, plain


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server named broker, and for a client that trusts it. RSA: its signatures have one length."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ["-subj", "/CN=broker", "-addext", "subjectAltName=DNS:broker", "-days", "2"]
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", *names]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=certificate)
    return server, client


async def dial(
    world: World, contexts: tuple[ssl.SSLContext, ssl.SSLContext], far: Any, **options: Any
) -> Any:
    server, client = contexts
    broker, member = world.host("broker"), world.host("member")
    await broker.start(world.loop.create_server(lambda: far, "broker", PORT, ssl=server))
    return await member.start(
        world.loop.create_connection(RecordingProtocol, "broker", PORT, **{"ssl": client, **options})
    )


def test_a_conversation_over_tls(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def main(world: World) -> Any:
        plain(world, split=0.5, coalesce=0.2)
        transport, near = await dial(world, contexts, far := RecordingProtocol(lambda data: data.upper()))
        member = world.network.by_name["member"]
        assert transport.get_extra_info("ssl_object").version().startswith("TLS")
        assert transport.get_extra_info("peername") == ("10.0.0.1", PORT)
        member.call(transport.write, b"hello " * 10_000)
        await asyncio.sleep(5)
        heard = near.heard
        member.call(transport.close)
        await asyncio.sleep(5)
        assert not world.network.connections
        return heard, near.events[-1], far.events

    outcome = run(1, main)
    assert outcome.result == (b"HELLO " * 10_000, "lost", ["made", "eof", "lost"])
    assert outcome.findings == ()


def test_the_same_seed_gives_the_same_digest_over_tls(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main(world: World) -> None:
        plain(world, split=0.5)
        transport, _ = await dial(world, contexts, RecordingProtocol(lambda data: data))
        world.network.by_name["member"].call(transport.write, b"hello " * 1000)
        await asyncio.sleep(5)

    assert run(1, main).digest == run(1, main).digest


def test_a_buffered_protocol_over_tls(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def main(world: World) -> Any:
        transport, _ = await dial(world, contexts, far := RecordingBufferedProtocol(1000))
        world.network.by_name["member"].call(transport.write, b"hello " * 1000)
        await asyncio.sleep(5)
        return b"".join(far.pieces)

    assert run(1, main).result == b"hello " * 1000


def test_the_wrong_host_name_is_refused(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def main(world: World) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            await dial(world, contexts, RecordingProtocol(), server_hostname="another")
        await asyncio.sleep(5)
        assert not world.network.connections

    run(1, main)


def test_a_certificate_without_a_known_issuer_is_refused(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main(world: World) -> Any:
        far = RecordingProtocol()
        with pytest.raises(ssl.SSLCertVerificationError, match=r"self.signed"):
            await dial(world, contexts, far, ssl=ssl.create_default_context())
        await asyncio.sleep(5)
        assert not world.network.connections
        return far.events

    assert run(1, main).result == []


@pytest.mark.parametrize("act", [Act.FIN, Act.RST, Act.SILENCE])
def test_a_handshake_that_is_cut_fails(contexts: tuple[ssl.SSLContext, ssl.SSLContext], act: Act) -> None:
    async def main(world: World) -> float:
        def cut() -> None:
            for way in world.network.between("member"):
                way.backward.trip = Trip(act, 100)

        world.loop.call_later(0.0025, cut)
        plain(world, latency=0.001)
        world.network.lookup_seconds = 0.0
        with pytest.raises(ConnectionError):
            await dial(world, contexts, RecordingProtocol(), ssl_handshake_timeout=15.0)
        return world.loop.time()

    seconds = run(1, main).result
    assert seconds == pytest.approx(15.0 if act is Act.SILENCE else 0.0, abs=0.1)


def test_a_handshake_that_is_cancelled_closes_the_connection(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main(world: World) -> None:
        plain(world, latency=1.0)
        task = asyncio.create_task(dial(world, contexts, RecordingProtocol()))
        await asyncio.sleep(2.5)
        assert world.network.connections
        task.cancel()
        await asyncio.sleep(5)
        assert not world.network.connections

    run(1, main)


def test_a_peer_without_tls(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def main(world: World) -> None:
        class Talks(RecordingProtocol):
            def connection_made(self, transport: Any) -> None:
                transport.write(b"plain text, whoever asks\r\n")

        broker, member = world.host("broker"), world.host("member")
        await broker.start(world.loop.create_server(Talks, "broker", PORT))
        with pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER"):
            await member.start(
                world.loop.create_connection(RecordingProtocol, "broker", PORT, ssl=contexts[1])
            )

    run(1, main)
