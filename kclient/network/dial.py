"""Opening one connection to one address, within a time limit, with an error that names the cause of a failure."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final

import attrs

from kclient.errors import ConnectError, CorruptDataError, InvalidFrameError, KclientError, PortClosedError
from kclient.log import get_logger
from kclient.network import sasl_failures, tls_failures, unreachable
from kclient.network.connection import Connection, Settings
from kclient.network.probes import PROBE_SECONDS, certificate, refusal
from kclient.network.unreachable import Peer
from kclient.runtime import Address, Runtime
from kclient.security.tls import Tls

logger = get_logger("kclient.tls")

HANDSHAKE_SHARE: Final = 0.8  # of the set-up time: a handshake that hangs is told from a connection that does


async def resolve(peer: Peer, runtime: Runtime) -> list[Address]:
    """Every address of the peer's name. Raises NameResolutionError."""
    began = runtime.now()
    try:
        addresses = await runtime.resolve(peer.host, peer.port)
    except (
        OSError,
        ValueError,
    ) as exc:  # ValueError: a name that cannot be one, such as a label of 64 letters
        raise _not_resolved(peer, runtime.now() - began, exc) from exc
    if not addresses:
        raise unreachable.name_not_resolved(peer, runtime.now() - began, OSError("no address"))
    return addresses


def _not_resolved(peer: Peer, seconds: float, problem: OSError | ValueError) -> ConnectError:
    if isinstance(problem, OSError) and problem.errno in unreachable.OPEN_FILES_LIMITS:
        return unreachable.open_files_limit(peer, seconds, problem, "dns")
    return unreachable.name_not_resolved(peer, seconds, problem)


async def open_connection(
    peer: Peer,
    settings: Settings,
    runtime: Runtime,
    timeout: float,
    on_closed: Callable[[Connection, KclientError | None], None],
) -> Connection:
    """A ready connection to `peer.ip`, or the ConnectError that tells why there is none; never a half-open one.

    The error's `stage` is "tcp" as long as no TCP connection was made.
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
        stage = connection.stage if stage != "tcp" else stage
        raise unreachable.no_answer(peer, runtime.now() - began, stage) from exc
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
    elif settings.tls is not None and not settings.tls.options.check_hostname:
        logger.warning("%s: connected with TLS, and any host's certificate would do here", connection.peer)


async def _not_connected(
    peer: Peer, tls: Tls | None, runtime: Runtime, seconds: float, problem: OSError
) -> ConnectError:
    """What the failure of the TCP connection or of the TLS handshake means."""
    if problem.errno in unreachable.OPEN_FILES_LIMITS:
        return unreachable.open_files_limit(peer, seconds, problem, "tcp")
    if tls is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            facts = await certificate(peer, runtime)
            return tls_failures.not_trusted(peer, seconds, problem, facts, tls.options)
        failure = tls_failures.as_connect_error(peer, seconds, problem, tls.options)
        if failure is not None:
            return failure
    return unreachable.not_connected(peer, seconds, problem)


async def _handshake_failure(
    connection: Connection, settings: Settings, runtime: Runtime, problem: PortClosedError, seconds: float
) -> ConnectError:
    """What the end of a connection means that never became ready."""
    peer, reason, tls = connection.peer, connection.reason, settings.tls
    if tls is not None and not connection.protocol.bytes_received:
        ended_by = connection.cause
        if not isinstance(ended_by, ssl.SSLError):
            ended_by = await refusal(peer, tls, runtime)
        if isinstance(ended_by, ssl.SSLError):
            return tls_failures.handshake_failed(peer, seconds, ended_by, tls.options)
    if isinstance(reason, CorruptDataError) and connection.stage == "sasl":
        why = (
            f"it announced a frame of {reason.size} bytes"
            if isinstance(reason, InvalidFrameError)
            else reason.text
        )
        return sasl_failures.not_proved(peer, "SASL", why)
    if isinstance(reason, InvalidFrameError):
        return unreachable.not_kafka(peer, seconds, reason.size.to_bytes(4, "big", signed=True))
    if isinstance(reason, CorruptDataError):
        return unreachable.bad_versions(peer, reason.text)
    if connection.protocol.bytes_received:
        return problem
    return unreachable.closed_early(peer, seconds, tls=tls is not None)


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
