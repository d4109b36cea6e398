"""A second look at a peer that a connection failed at, to say why. Nothing secret is sent."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from kclient.errors import KclientError
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.network.connection import Connection
from kclient.network.sasl_failures import asked_for
from kclient.network.unreachable import Peer
from kclient.protocol.errors import NONE, UNSUPPORTED_SASL_MECHANISM
from kclient.runtime import Address, Runtime
from kclient.security.certificate import CertificateFacts, read_certificate
from kclient.security.tls import Tls

PROBE_SECONDS: Final = 0.5


async def answers_tls(peer: Peer, runtime: Runtime) -> bool:
    """Whether a peer that closed a plain-text connection without a word speaks TLS.

    Many TLS servers do exactly that. Nothing is sent but the first message of a handshake, so no certificate needs
    to be trusted: the question is only which language the port speaks.
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


async def refusal(peer: Peer, tls: Tls, runtime: Runtime) -> Exception | None:
    """Why a broker ends a connection whose handshake we took for done.

    In TLS 1.3 it looks at our certificate after that, and what we have sent by then destroys its alert on the way.
    So we listen once more, and send nothing.
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
    """Raise AuthenticationError where a listener goes on with SASL; others say that it is out of place."""
    try:
        version = connection.version_for(SaslHandshakeRequest)
        answer = await connection.request(SaslHandshakeRequest(mechanism="PLAIN"), version, deadline)
    except KclientError:
        return  # it tells nothing then, and whoever uses the connection learns what is wrong with it
    if isinstance(answer, SaslHandshakeResponse) and answer.error_code in (NONE, UNSUPPORTED_SASL_MECHANISM):
        connection.close()
        raise asked_for(connection.peer, answer.mechanisms)


class _Listening(asyncio.Protocol):
    """Waits for the end of a connection, and tells why it came."""

    def __init__(self, ended: asyncio.Future[Exception | None]) -> None:
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(exc)
