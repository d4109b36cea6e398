"""Opening one connection to one address, within a time limit, with an error that names the cause of a failure."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

import attrs

from kclient.errors import ConnectError, CorruptDataError, InvalidFrameError, KclientError, PortClosedError
from kclient.network import sasl_failures, tls_failures, unreachable
from kclient.network.connection import Connection, Settings
from kclient.network.unreachable import Peer
from kclient.runtime import Address, Runtime
from kclient.security.certificate import CertificateFacts, read_certificate
from kclient.security.tls import Tls

logger = logging.getLogger("kclient.tls")

PROBE_SECONDS: Final = 0.5
HANDSHAKE_SHARE: Final = 0.8  # of the set-up time: a handshake that hangs is told from a connection that does


async def resolve(peer: Peer, runtime: Runtime) -> list[Address]:
    """Every address of the peer's name. Raises NameResolutionError. Spec: B.4.11."""
    began = runtime.now()
    try:
        addresses = await runtime.resolve(peer.host, peer.port)
    except (
        OSError,
        ValueError,
    ) as problem:  # ValueError: a name that cannot be one, such as a label of 64 letters
        raise unreachable.name_not_resolved(peer, runtime.now() - began, problem) from problem
    if not addresses:
        raise unreachable.name_not_resolved(peer, runtime.now() - began, OSError("no address"))
    return addresses


async def open_connection(
    peer: Peer,
    settings: Settings,
    runtime: Runtime,
    timeout: float,
    on_closed: Callable[[Connection, KclientError | None], None],
) -> Connection:
    """A ready connection to `peer.ip`, or the ConnectError that tells why there is none; never a half-open one.

    The error's `stage` is "tcp" as long as no TCP connection was made. Spec: B.4.3, B.4.10, U-16, U-17.
    """
    began = runtime.now()
    connection = Connection(peer, settings, on_closed)
    stage = "tcp"
    try:
        async with asyncio.timeout(timeout):
            await _connect(connection, settings, runtime, timeout)
            stage = "versions"
            await connection.shake_hands()
    except TimeoutError as problem:
        stage = connection.stage if stage != "tcp" else stage
        raise unreachable.no_answer(peer, runtime.now() - began, stage) from problem
    except PortClosedError as problem:
        raise _handshake_failure(connection, settings, problem, runtime.now() - began) from problem
    except KclientError:
        raise
    except OSError as problem:
        raise await _not_connected(peer, settings.tls, runtime, runtime.now() - began, problem) from problem
    finally:
        if not connection.ready:
            connection.close()
    return connection


async def _connect(connection: Connection, settings: Settings, runtime: Runtime, timeout: float) -> None:
    options: dict[str, Any] = {}
    if settings.tls is not None:
        context = await runtime.offload(settings.tls.refresh)
        options = {
            "ssl": context,
            "server_hostname": connection.peer.host,
            "ssl_handshake_timeout": timeout * HANDSHAKE_SHARE,
        }
    address = Address(connection.peer.ip, connection.peer.port)
    transport, _ = await runtime.connect(lambda: connection.protocol, address, **options)
    runtime.set_buffers(transport, settings.send_buffer_bytes, settings.receive_buffer_bytes)
    if settings.tls is not None and not settings.tls.options.verify:
        logger.warning("%s: connected with TLS, and nothing proves that it is the broker", connection.peer)


async def _not_connected(
    peer: Peer, tls: Tls | None, runtime: Runtime, seconds: float, problem: OSError
) -> ConnectError:
    """What the failure of the TCP connection or of the TLS handshake means."""
    if tls is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            facts = await _certificate(peer, runtime)
            return tls_failures.not_trusted(peer, seconds, problem, facts, tls.options)
        failure = tls_failures.as_connect_error(peer, seconds, problem, tls.options)
        if failure is not None:
            return failure
    return unreachable.not_connected(peer, seconds, problem)


def _handshake_failure(
    connection: Connection, settings: Settings, problem: PortClosedError, seconds: float
) -> ConnectError:
    """What the end of a connection means that never became ready."""
    peer, reason = connection.peer, connection.reason
    if isinstance(connection.cause, ssl.SSLError) and settings.tls is not None:
        return tls_failures.handshake_failed(peer, seconds, connection.cause, settings.tls.options)
    if isinstance(reason, CorruptDataError) and connection.stage == "sasl":
        return sasl_failures.not_proved(peer, "SASL", reason.text)
    if isinstance(reason, InvalidFrameError):
        return unreachable.not_kafka(peer, seconds, reason.size.to_bytes(4, "big", signed=True))
    if isinstance(reason, CorruptDataError):
        return unreachable.bad_versions(peer, reason.text)
    return problem if connection.protocol.bytes_received else unreachable.closed_early(peer, seconds)


async def answers_tls(peer: Peer, runtime: Runtime) -> bool:
    """Whether a peer that closed a plain-text connection without a word speaks TLS.

    Many TLS servers do exactly that. Nothing is sent but the first message of a handshake, so no certificate needs
    to be trusted: the question is only which language the port speaks.
    """
    try:
        transport = await _shown_certificate(peer, runtime)
    except ssl.SSLError as problem:
        return "ALERT" in (problem.reason or "")
    except OSError:
        return False
    transport.abort()
    return True


async def answers_plain(peer: Peer, settings: Settings, runtime: Runtime) -> bool:
    """Whether a peer that ended a TLS handshake answers Kafka's first request without TLS. Nothing secret is sent."""
    plain = attrs.evolve(settings, tls=None, authenticate=None)
    try:
        connection = await open_connection(
            peer, plain, runtime, PROBE_SECONDS, lambda connection, reason: None
        )
    except KclientError:
        return False
    connection.close()
    return True


async def _certificate(peer: Peer, runtime: Runtime) -> CertificateFacts | None:
    """What the certificate says that a peer shows, trusted or not; None if it cannot be had or read."""
    try:
        transport = await _shown_certificate(peer, runtime)
        der = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        transport.abort()
        return read_certificate(der)
    except (OSError, ValueError):
        return None


async def _shown_certificate(peer: Peer, runtime: Runtime) -> asyncio.Transport:
    """A TLS connection on which nothing is ever sent, so nobody needs to be trusted. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(PROBE_SECONDS):
        transport, _ = await runtime.connect(
            asyncio.Protocol, Address(peer.ip, peer.port), ssl=context, server_hostname=peer.host
        )
    return transport
