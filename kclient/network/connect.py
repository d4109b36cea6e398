"""Resolve names and open connections, with an error that names the cause of a failure.

    step                        on failure
    --------------------------  -----------------------------------------------------------------------------
    resolve the host name       NameResolutionError
    TCP connect                 PortClosedError (stage tcp), OpenFilesLimitError
    TLS handshake               CertificateError with the certificate's names, which a second connection reads
                                without trusting it; PeerDoesNotSpeakTlsError, TlsError
    ApiVersions, SASL           VersionError (not Kafka), PeerSpeaksTlsError, AuthenticationError

When a connection fails without a reason, probes open one more connection to find it. They send no secret.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from kclient.errors import (
    ConnectError,
    CorruptDataError,
    InvalidFrameError,
    KclientError,
    PortClosedError,
)
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.log import get_logger
from kclient.network import errors
from kclient.network.connection import Connection, ConnectionSettings
from kclient.network.errors import names_not_resolved
from kclient.network.peer import Peer
from kclient.network.sasl import peer_not_authentic, sasl_required
from kclient.network.tls import certificate_not_trusted, tls_connect_error, tls_handshake_failed
from kclient.protocol.errors import NONE, UNSUPPORTED_SASL_MECHANISM
from kclient.runtime import Address, Runtime
from kclient.security.certificate import CertificateFacts, read_certificate
from kclient.security.tls import Tls

logger: Final = get_logger("kclient.connection")

HANDSHAKE_SHARE: Final = 0.8  # of the set-up timeout, so that a hanging TLS handshake has its own error


async def resolve(peer: Peer, runtime: Runtime) -> list[Address]:
    """Return every address of the peer's host name. Raise NameResolutionError if there is none."""
    began = runtime.now()
    try:
        addresses = await runtime.resolve(peer.host, peer.port)
    except (OSError, ValueError) as exc:  # ValueError: an invalid name, such as a label of 64 letters
        raise _not_resolved(peer, runtime.now() - began, exc) from exc
    if not addresses:
        raise errors.name_not_resolved(peer, runtime.now() - began, OSError("no address"))
    return addresses


def _not_resolved(peer: Peer, seconds: float, error: OSError | ValueError) -> ConnectError:
    if isinstance(error, OSError) and error.errno in errors.OPEN_FILES_LIMITS:
        return errors.open_files_limit(peer, seconds, error, "dns")
    return errors.name_not_resolved(peer, seconds, error)


async def open_connection(
    peer: Peer,
    settings: ConnectionSettings,
    runtime: Runtime,
    timeout: float,
    on_closed: Callable[[Connection, KclientError | None], None],
) -> Connection:
    """Return a ready connection to `peer.ip`. Raise ConnectError, and leave no socket open, if that fails.

    The error's `stage` is "tcp" if the TCP connection failed. `timeout` is in seconds, for all steps together.
    """
    began = runtime.now()
    connection = Connection(peer, settings, on_closed)
    stage = "tcp"
    try:
        async with asyncio.timeout(timeout):
            await _connect(connection, settings, runtime, timeout)
            stage = "versions"
            await connection.shake_hands()
    except TimeoutError as exc:
        if connection.if_too_slow is not None:
            raise connection.if_too_slow from exc
        stage = connection.stage if stage != "tcp" else stage
        raise errors.no_response(peer, runtime.now() - began, stage) from exc
    except PortClosedError as exc:
        raise await _handshake_failure(connection, settings, runtime, exc, runtime.now() - began) from exc
    except KclientError:
        raise
    except OSError as exc:
        raise await _not_connected(peer, settings.tls, runtime, runtime.now() - began, exc) from exc
    finally:
        if not connection.ready:
            connection.close()
    return connection


async def _connect(
    connection: Connection, settings: ConnectionSettings, runtime: Runtime, timeout: float
) -> None:
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
        logger.warning(
            "%s: connected with TLS, but the broker's certificate is not verified", connection.peer
        )
    elif settings.tls is not None and not settings.tls.options.check_hostname:
        logger.warning("%s: connected with TLS, but the host name is not verified", connection.peer)


async def _not_connected(
    peer: Peer, tls: Tls | None, runtime: Runtime, seconds: float, error: OSError
) -> ConnectError:
    """Return the error for a failed TCP connection or TLS handshake."""
    if error.errno in errors.OPEN_FILES_LIMITS:
        return errors.open_files_limit(peer, seconds, error, "tcp")
    if tls is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            facts = await certificate(peer, runtime)
            return certificate_not_trusted(peer, seconds, error, facts, tls.options)
        failure = tls_connect_error(peer, seconds, error, tls.options)
        if failure is not None:
            return failure
    return errors.not_connected(peer, seconds, error)


async def _handshake_failure(
    connection: Connection,
    settings: ConnectionSettings,
    runtime: Runtime,
    error: PortClosedError,
    seconds: float,
) -> ConnectError:
    """Return the error for a connection that was closed before it was ready."""
    peer, reason, tls = connection.peer, connection.reason, settings.tls
    if tls is not None and not connection.protocol.bytes_received:
        ended_by = connection.cause
        if not isinstance(ended_by, ssl.SSLError):
            ended_by = await refusal(peer, tls, runtime)
        if isinstance(ended_by, ssl.SSLError):
            return tls_handshake_failed(peer, seconds, ended_by, tls.options)
    if isinstance(reason, CorruptDataError) and connection.stage == "sasl":
        why = (
            f"it announced a frame of {reason.size} bytes"
            if isinstance(reason, InvalidFrameError)
            else reason.text
        )
        return peer_not_authentic(peer, "SASL", why)
    if isinstance(reason, InvalidFrameError):
        return errors.not_kafka(peer, seconds, reason.size.to_bytes(4, "big", signed=True))
    if isinstance(reason, CorruptDataError):
        return errors.bad_versions(peer, reason.text)
    if connection.protocol.bytes_received:
        return error
    return errors.closed_early(peer, seconds, tls=tls is not None)


async def answers_plain(peer: Peer, settings: ConnectionSettings, runtime: Runtime) -> bool:
    """Return whether a peer that ended a TLS handshake answers ApiVersions without TLS. Sends no secret."""
    plain = attrs.evolve(settings, tls=None, authenticate=None)
    try:
        connection = await open_connection(
            peer, plain, runtime, PROBE_SECONDS, lambda connection, reason: None
        )
    except KclientError:
        return False
    connection.close()
    return True


PROBE_SECONDS: Final = 0.5


async def answers_tls(peer: Peer, runtime: Runtime) -> bool:
    """Return whether a peer that closed a plain-text connection without a response speaks TLS.

    Only the first message of a TLS handshake is sent, so no certificate needs to be trusted.
    """
    try:
        transport = await _shown_certificate(peer, runtime)
    except ssl.SSLError as exc:
        return "ALERT" in (exc.reason or "")
    except OSError:
        return False
    transport.abort()
    return True


async def certificate(peer: Peer, runtime: Runtime) -> CertificateFacts | None:
    """Return the contents of the certificate that a peer shows, trusted or not; None if it cannot be read."""
    try:
        transport = await _shown_certificate(peer, runtime)
        der = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        transport.abort()
        return read_certificate(der)
    except (OSError, ValueError):
        return None


async def _shown_certificate(peer: Peer, runtime: Runtime) -> asyncio.Transport:
    """Open a TLS connection without verification. Nothing is sent on it. Raise OSError if that fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(PROBE_SECONDS):
        transport, _ = await runtime.connect(
            asyncio.Protocol, Address(peer.ip, peer.port), ssl=context, server_hostname=peer.host
        )
    return transport


async def refusal(peer: Peer, tls: Tls, runtime: Runtime) -> Exception | None:
    """Return why a broker closed a connection after a successful TLS handshake; None if unknown.

    In TLS 1.3 the broker checks the client certificate after the client has finished its handshake. Data that the
    client has sent by then make the kernel reset the connection, and the broker's alert is lost. So connect once
    more, send nothing, and wait for the alert.
    """
    ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            transport, _ = await runtime.connect(
                lambda: _Listening(ended),
                Address(peer.ip, peer.port),
                ssl=tls.refresh(),
                server_hostname=peer.host,
            )
            try:
                return await ended
            finally:
                transport.abort()
    except OSError:
        return None


async def require_no_sasl(connection: Connection, deadline: float) -> None:
    """Raise AuthenticationError if the listener accepts SaslHandshake, and so requires SASL."""
    try:
        version = connection.version_for(SaslHandshakeRequest)
        response = await connection.request(SaslHandshakeRequest(mechanism="PLAIN"), version, deadline)
    except KclientError:
        return  # not conclusive; the next request on this connection will fail with the real error
    if isinstance(response, SaslHandshakeResponse) and response.error_code in (
        NONE,
        UNSUPPORTED_SASL_MECHANISM,
    ):
        connection.close()
        raise sasl_required(connection.peer, response.mechanisms)


class _Listening(asyncio.Protocol):
    """Waits for the end of a connection, and stores its exception."""

    def __init__(self, ended: asyncio.Future[Exception | None]) -> None:
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(exc)


async def canonical_servers(peers: Iterable[Peer], runtime: Runtime) -> list[Peer]:
    """Return one peer for each canonical name of the servers (client_dns_lookup, for Kerberos).

    A server that does not resolve stays as it is: connecting to it raises the error.
    """
    found: dict[Peer, None] = {}
    for peer in peers:
        try:
            names = await runtime.canonical_names(peer.host, peer.port)
        except (OSError, ValueError):
            names = [peer.host]
        found.update({Peer(name, peer.port): None for name in names})
    return list(found)


async def until_resolved(peers: Sequence[Peer], runtime: Runtime, timeout: float, pause: float) -> None:
    """Resolve the servers' names every `pause` seconds until one of them has an address (KIP-909).

    Raise NameResolutionError, which is not retriable, after `timeout` seconds.
    """
    error: Exception | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                error = await _unresolved(peers, runtime, error)
                if error is None:
                    return
                await asyncio.sleep(pause)
    except TimeoutError:
        raise names_not_resolved(peers, timeout, error) from error


async def _unresolved(peers: Sequence[Peer], runtime: Runtime, before: Exception | None) -> Exception | None:
    """Return None if any name has an address, else the last error. Log the first failure as a warning."""
    error: Exception | None = None
    for peer in peers:
        try:
            if await runtime.resolve(peer.host, peer.port):
                return None
            error = OSError("no address")
        except (OSError, ValueError) as exc:
            error = exc
    if before is None:
        logger.warning("no bootstrap server resolves (%s); retrying", error)
    return error
