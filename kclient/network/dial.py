"""Opening one connection to one address, within a time limit, with an error that names the cause of a failure."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final

from kclient.errors import ConnectError, CorruptDataError, InvalidFrameError, KclientError, PortClosedError
from kclient.network import unreachable
from kclient.network.connection import Connection, Settings
from kclient.network.unreachable import Peer
from kclient.runtime import Address, Runtime

PROBE_SECONDS: Final = 0.5


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
            await _connect(connection, settings, runtime)
            stage = "versions"
            await connection.shake_hands()
    except TimeoutError as problem:
        raise unreachable.no_answer(peer, runtime.now() - began, stage) from problem
    except PortClosedError as problem:
        raise _handshake_failure(connection, problem, runtime.now() - began) from problem
    except KclientError:
        raise
    except OSError as problem:
        raise unreachable.not_connected(peer, runtime.now() - began, problem) from problem
    finally:
        if not connection.ready:
            connection.close()
    return connection


async def _connect(connection: Connection, settings: Settings, runtime: Runtime) -> None:
    options: dict[str, Any] = {}
    if settings.ssl is not None:
        options = {"ssl": settings.ssl, "server_hostname": connection.peer.host}
    address = Address(connection.peer.ip, connection.peer.port)
    transport, _ = await runtime.connect(lambda: connection.protocol, address, **options)
    runtime.set_buffers(transport, settings.send_buffer_bytes, settings.receive_buffer_bytes)


def _handshake_failure(connection: Connection, problem: PortClosedError, seconds: float) -> ConnectError:
    """What the end of a connection means that never became ready."""
    peer, reason = connection.peer, connection.reason
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    address = Address(peer.ip, peer.port)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            transport, _ = await runtime.connect(
                asyncio.Protocol, address, ssl=context, server_hostname=peer.host
            )
    except ssl.SSLError as problem:
        return "ALERT" in (problem.reason or "")
    except OSError:
        return False
    transport.abort()
    return True
