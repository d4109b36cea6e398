"""The conversation of SASL with a scripted broker: both mechanisms, both framings, and a broker that lies."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import random
import struct
import threading
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_from_bytes

import pytest

from kclient.config import Config, load
from kclient.errors import AuthenticationError, ConnectError, KclientError
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.network import broker, sasl
from kclient.network.cluster import Cluster
from kclient.network.connection import Connection
from kclient.network.peer import Peer
from kclient.network.sasl import Authenticator, Credentials
from kclient.protocol.errors import ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from kclient.protocol.message import Message
from kclient.runtime import Runtime
from kclient.security import ScramError, ScramServer, Secret, plain_user, scram, scram_credential
from tests.default_responses import api_versions
from tests.network.support import connect
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker

PASSWORD = "pass,word=1"
HANDSHAKE, AUTHENTICATE = "SaslHandshakeRequest", "SaslAuthenticateRequest"
ALL = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def who(mechanism: str, password: str = PASSWORD, **more: Any) -> Authenticator:
    return Authenticator(Credentials(mechanism, "alice", Secret(password), **more), Runtime(), 5.0)


def handshake(mechanism: str, *others: str, error: int = 0) -> On:
    response = SaslHandshakeResponse(
        error_code=error, mechanisms=[*others] if error else [mechanism, *others]
    )
    return On(HANDSHAKE, response, check=lambda request: request.mechanism == mechanism)


def token(auth_bytes: bytes = b"", **fields: Any) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(auth_bytes=auth_bytes, **fields)


class ScramBroker:
    """Answers tokens as a broker does; `lifetime_ms` comes with the last."""

    def __init__(self, mechanism: str, lifetime_ms: int = 0, password: str = PASSWORD) -> None:
        self.credential = scram_credential(mechanism, password, b"some salt", 4096)
        self.server = ScramServer(mechanism, {"alice": self.credential}.get, "server-nonce")
        self.lifetime_ms = lifetime_ms

    def __call__(self, request: Any) -> SaslAuthenticateResponse:
        try:
            response = self.server.step(request.auth_bytes)
        except ScramError as exc:
            return token(error_code=SASL_AUTHENTICATION_FAILED, error_message=str(exc))
        return token(response, session_lifetime_ms=self.lifetime_ms if self.server.done else 0)


def scram_steps(mechanism: str, **keys: Any) -> list[On]:
    broker = ScramBroker(mechanism, **keys)
    return [handshake(mechanism, "PLAIN"), On(AUTHENTICATE, broker), On(AUTHENTICATE, broker)]


async def refused(peer: ScriptedBroker, authenticator: Authenticator) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        await connect(peer, authenticate=authenticator)
    error = caught.value
    assert (error.stage, error.retriable) == ("sasl", False)
    assert PASSWORD not in error.text
    return error


@pytest.mark.spec("B.4.3", "B.4.12")
def test_plain_sends_one_token_and_versions_are_asked_before_and_after_it() -> None:
    def check(request: Any) -> bool:
        user = plain_user(request.auth_bytes)
        return (user.username, user.password.reveal()) == ("alice", PASSWORD)

    async def main() -> None:
        async with ScriptedBroker(handshake("PLAIN"), On(AUTHENTICATE, token(), check=check)) as peer:
            connection = await connect(peer, authenticate=who("PLAIN"))
            assert connection.ready
            assert [(seen.name, seen.version) for seen in peer.requests] == [
                (HANDSHAKE, 1),
                (AUTHENTICATE, 2),
            ]
            connection.close()

    asyncio.run(main())


def test_only_an_authenticated_broker_learns_which_cluster_it_is_taken_for() -> None:
    """KIP-1242, in the order of Java: the versions before SASL are asked by a client that knows nothing."""

    async def main() -> None:
        offered = api_versions({})
        steps = [
            On("ApiVersionsRequest", offered, check=lambda one: (one.cluster_id, one.node_id) == (None, -1)),
            handshake("PLAIN"),
            On(AUTHENTICATE, token()),
            On("ApiVersionsRequest", offered, check=lambda one: (one.cluster_id, one.node_id) == ("c", 0)),
        ]
        async with ScriptedBroker(*steps) as peer:
            connection = await connect(peer, authenticate=who("PLAIN"), cluster_id=lambda: "c")
            assert [seen.name for seen in peer.requests] == [step.request for step in steps]
            connection.close()

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_scram_proves_both_sides_to_each_other(mechanism: str, version: int) -> None:
    async def main() -> None:
        versions = {AUTHENTICATE: (0, version)}
        async with ScriptedBroker(*scram_steps(mechanism), versions=versions) as peer:
            connection = await connect(peer, authenticate=who(mechanism))
            assert connection.ready
            assert {seen.version for seen in peer.requests if seen.name == AUTHENTICATE} == {version}
            connection.close()

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("mechanism", ALL)
def test_a_wrong_password_is_reported_in_the_brokers_words(mechanism: str) -> None:
    async def main() -> None:
        if mechanism == "PLAIN":
            said = token(error_code=SASL_AUTHENTICATION_FAILED, error_message="Invalid username or password")
            steps = [handshake("PLAIN"), On(AUTHENTICATE, said)]
        else:
            steps = scram_steps(mechanism, password="another")
        async with ScriptedBroker(*steps) as peer:
            error = await refused(peer, who(mechanism))
            assert error.mechanism == mechanism
            assert "SASL_AUTHENTICATION_FAILED (58)" in error.text
            assert ("Invalid username or password" if mechanism == "PLAIN" else "does not fit") in error.text

    asyncio.run(main())


@pytest.mark.spec("B.4.12", "H-21")
@pytest.mark.parametrize(
    ("response", "said"),
    [
        (
            SaslHandshakeResponse(error_code=UNSUPPORTED_SASL_MECHANISM, mechanisms=["PLAIN", "GSSAPI"]),
            "PLAIN, GSSAPI",
        ),
        (SaslHandshakeResponse(error_code=UNSUPPORTED_SASL_MECHANISM), "no mechanism at all"),
        (SaslHandshakeResponse(mechanisms=[]), "no mechanism at all"),
        (SaslHandshakeResponse(mechanisms=["PLAIN"]), "it offers PLAIN"),
        (SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE), "does not use SASL"),
        (SaslHandshakeResponse(error_code=-1), "UNKNOWN_SERVER_ERROR (-1)"),
    ],
)
def test_a_mechanism_is_never_exchanged_for_another(response: SaslHandshakeResponse, said: str) -> None:
    async def main() -> None:
        async with ScriptedBroker(On(HANDSHAKE, response)) as peer:
            error = await refused(peer, who("SCRAM-SHA-512"))
            assert said in error.text
            assert peer.of(AUTHENTICATE) == []

    asyncio.run(main())


CHALLENGE = b"r=%s+,s=c2FsdA==,i=4096"


def challenge(request: Any) -> SaslAuthenticateResponse:
    return token(CHALLENGE % request.auth_bytes.rpartition(b"r=")[2])


@pytest.mark.spec("H-21", "H-22")
@pytest.mark.parametrize(
    "steps",
    [
        [On(AUTHENTICATE, token(b"v=AAAA"))],
        [On(AUTHENTICATE, token())],
        [On(AUTHENTICATE, token(CHALLENGE % b"another"))],
        [On(AUTHENTICATE, lambda r: token(challenge(r).auth_bytes.replace(b"4096", b"131073")))],
        [On(AUTHENTICATE, challenge), On(AUTHENTICATE, token())],
        [On(AUTHENTICATE, challenge), On(AUTHENTICATE, token(b"v=AAAA"))],
        [On(AUTHENTICATE, challenge), On(AUTHENTICATE, token(b"e=other-error"))],
        [On(AUTHENTICATE, challenge), On(AUTHENTICATE, challenge)],
        [
            On(AUTHENTICATE, challenge),
            On(AUTHENTICATE, token(b"v=AAAA", error_code=SASL_AUTHENTICATION_FAILED)),
        ],
        [On(AUTHENTICATE, token(b"\x00" * 900_000))],
        [On(AUTHENTICATE, raw=struct.pack(">i", 100_000_000))],
    ],
    ids=range(11),
)
def test_a_broker_that_breaks_the_rules_is_refused(steps: list[On]) -> None:
    async def main() -> None:
        async with ScriptedBroker(handshake("SCRAM-SHA-256"), *steps) as peer:
            await refused(peer, who("SCRAM-SHA-256"))

    asyncio.run(main())


@pytest.mark.spec("H-21")
def test_plain_ends_with_its_only_token() -> None:
    async def main() -> None:
        async with ScriptedBroker(handshake("PLAIN"), On(AUTHENTICATE, token(b"more?"))) as peer:
            assert "sent another token after the last one" in (await refused(peer, who("PLAIN"))).text

    asyncio.run(main())


@pytest.mark.spec("I-39")
def test_a_broker_that_echoes_the_password_does_not_get_it_into_the_error() -> None:
    async def main() -> None:
        said = token(
            error_code=SASL_AUTHENTICATION_FAILED, error_message=f"no such password: {PASSWORD}\n\x1b[31m"
        )
        async with ScriptedBroker(handshake("PLAIN"), On(AUTHENTICATE, said)) as peer:
            assert '"no such password: ***\\n\\x1b[31m"' in (await refused(peer, who("PLAIN"))).text

    asyncio.run(main())


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "encode",
    [
        base64.b64encode,
        base64.urlsafe_b64encode,
        binascii.hexlify,
        lambda token: base64.b64encode(b"x" + token),
        lambda token: base64.b64encode(token)[1:],
        lambda token: base64.b64encode(token)[2:],
        lambda token: base64.b64encode(token)[3:],
        lambda token: b"abc" + base64.b64encode(token),
        lambda token: b"f" + binascii.hexlify(token),
        lambda token: b" ".join(base64.b64encode(token)[at : at + 3] for at in range(0, 40, 3)),
        lambda token: quote_from_bytes(token, safe="").replace("h", "%68").encode(),
    ],
)
def test_nor_does_one_that_echoes_the_token_encoded(encode: Callable[[bytes], bytes]) -> None:
    async def main() -> None:
        echo = encode(f"\0alice\0{PASSWORD}".encode()).decode().rstrip("=")
        said = token(error_code=SASL_AUTHENTICATION_FAILED, error_message=f"bad token {echo}!")
        async with ScriptedBroker(handshake("PLAIN"), On(AUTHENTICATE, said)) as peer:
            text = (await refused(peer, who("PLAIN"))).text
            assert echo not in text
            assert "not shown" in text

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_a_provider_that_fails_later_is_an_authentication_error() -> None:
    async def main() -> None:
        def gone() -> str:
            raise ValueError("comes from the file /run/secrets/kafka, which cannot be read: No such file")

        async with ScriptedBroker(handshake("PLAIN")) as peer:
            authenticator = Authenticator(Credentials("PLAIN", "alice", Secret(gone)), Runtime(), 5.0)
            assert "/run/secrets/kafka" in (await refused(peer, authenticator)).text

    asyncio.run(main())


@contextlib.asynccontextmanager
async def raw_broker(steps: list[bytes | None], received: list[bytes]) -> AsyncIterator[Any]:
    """A broker whose SaslHandshake ends at version 0: tokens come and go without Kafka's headers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def frame() -> bytes:
            return await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])

        def send(payload: bytes) -> None:
            writer.write(struct.pack(">i", len(payload)) + payload)

        def versions(request: bytes) -> None:
            ranges = b"".join(struct.pack(">hhh", key, 0, top) for key, top in ((18, 0), (17, 0), (12, 0)))
            send(request[4:8] + struct.pack(">hi", 0, 3) + ranges)

        request = await frame()
        send(request[4:8] + struct.pack(">hi", 35, 0))  # ApiVersions in a version that is too new
        versions(await frame())
        request = await frame()
        send(request[4:8] + struct.pack(">hih", 0, 1, 13) + b"SCRAM-SHA-256")
        for step in steps:
            received.append(await frame())
            if step is None:
                writer.close()
                over.set()
                return
            send(step or server.step(received[-1]))
        request = await frame()
        send(request[4:8] + struct.pack(">hi", 35, 0))
        versions(await frame())
        await reader.read()
        writer.close()
        over.set()

    credential = scram_credential("SCRAM-SHA-256", PASSWORD, b"salt", 4096)
    server = ScramServer("SCRAM-SHA-256", {"alice": credential}.get, "server-nonce")
    over = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    yield SimpleNamespace(host="127.0.0.1", port=port, node_id=1)
    listening.close()
    await over.wait()
    await asyncio.sleep(0.01)  # the loop drops the transport


@pytest.mark.spec("B.4.12")
def test_after_version_0_of_the_handshake_tokens_go_without_headers() -> None:
    async def main() -> None:
        received: list[bytes] = []
        async with raw_broker([b"", b""], received) as peer:
            connection = await connect(peer, authenticate=who("SCRAM-SHA-256"))
            assert connection.ready
            assert [token[:5] for token in received] == [b"n,,n=", b"c=biw"]
            connection.close()

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_an_old_broker_refuses_by_closing() -> None:
    async def main() -> None:
        async with raw_broker([None], []) as peer:
            with pytest.raises(ConnectError, match="waiting for an authentication token"):
                await connect(peer, authenticate=who("SCRAM-SHA-256"))

    asyncio.run(main())


@pytest.mark.spec("H-22")
def test_the_key_is_derived_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    derive = scram.hashlib.pbkdf2_hmac

    def watched(*arguments: Any) -> bytes:
        threads.append(threading.get_ident())
        return derive(*arguments)

    async def main() -> None:
        steps = scram_steps("SCRAM-SHA-512")
        monkeypatch.setattr(scram.hashlib, "pbkdf2_hmac", watched)
        async with ScriptedBroker(*steps) as peer:
            (await connect(peer, authenticate=who("SCRAM-SHA-512"))).close()

    asyncio.run(main())
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


@pytest.mark.spec("H-22")
def test_a_key_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def endless(*arguments: Any) -> bytes:
        given_up.wait(5.0)
        return b""

    async def main() -> None:
        steps = scram_steps("SCRAM-SHA-256")[:2]
        monkeypatch.setattr(scram.hashlib, "pbkdf2_hmac", endless)
        monkeypatch.setattr(sasl, "DERIVE_SECONDS", 0.05)
        async with ScriptedBroker(*steps) as peer:
            assert "took more than" in (await refused(peer, who("SCRAM-SHA-256"))).text
        given_up.set()

    asyncio.run(main())


# --- sessions that end -----------------------------------------------------------------------------------------------


@pytest.fixture
def short_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions shorter than any broker can renew, to save time."""
    monkeypatch.setattr(sasl, "SHORTEST_SESSION_MS", 1)


async def beat(connection: Connection) -> Any:
    return await connection.request(HeartbeatRequest(), 4, connection._loop.time() + 5)


@pytest.mark.spec("B.4.12")
def test_a_session_is_renewed_on_the_same_connection_before_the_next_request(short_sessions: None) -> None:
    """What is in flight is answered, what comes later waits, and everything keeps its order."""
    lifetime = 400

    async def main() -> None:
        steps = [*scram_steps("SCRAM-SHA-256", lifetime_ms=lifetime), *scram_steps("SCRAM-SHA-256")]
        slow = On("HeartbeatRequest", HeartbeatResponse(error_code=1), delay=0.1)
        quick = [On("HeartbeatRequest", HeartbeatResponse(error_code=code)) for code in (2, 3, 4)]
        async with ScriptedBroker(*steps, slow, *quick) as peer:
            connection = await connect(peer, authenticate=who("SCRAM-SHA-256"))
            began = connection._loop.time()
            await asyncio.sleep(0.3)
            in_flight = asyncio.ensure_future(beat(connection))
            await asyncio.sleep(0.085)  # the renewal is due now, and the first response is outstanding
            waiting = [asyncio.ensure_future(beat(connection)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()  # the task that sets a renewal off may go away in the middle of it
            responses = await asyncio.gather(in_flight, *waiting[1:])
            assert [response.error_code for response in responses] == [1, 2, 3]
            assert (await beat(connection)).error_code == 4
            names = [seen.name for seen in peer.requests]
            once = [HANDSHAKE, AUTHENTICATE, AUTHENTICATE]
            assert names == [*once, "HeartbeatRequest", *once, *["HeartbeatRequest"] * 3]
            assert {seen.connection for seen in peer.requests} == {0}
            renewed = peer.requests[4].at - began
            assert renewed >= 0.85 * lifetime / 1000 - 0.05
            connection.close()

    asyncio.run(main())


@pytest.mark.spec("H-25")
@pytest.mark.parametrize("lifetime_ms", [1, 10, 999])
def test_a_session_that_no_broker_could_renew_is_refused(lifetime_ms: int) -> None:
    with pytest.raises(AuthenticationError, match=f"a session of {lifetime_ms} ms"):
        renewal(lifetime_ms)


def test_a_request_goes_out_between_renewals_that_take_longer_than_a_session(short_sessions: None) -> None:
    """The broker answers each token so late that the session is over when it begins."""

    async def main() -> None:
        late = On(AUTHENTICATE, token(session_lifetime_ms=20), delay=0.05)
        beats = [On("HeartbeatRequest", HeartbeatResponse(error_code=code)) for code in (1, 2, 3)]
        async with ScriptedBroker(*[late] * 4, *beats) as peer:
            peer.default_responses |= {
                HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
                AUTHENTICATE: late.answer,
            }
            connection = await connect(peer, authenticate=who("PLAIN"))
            responses = await asyncio.gather(*(beat(connection) for _ in range(3)))
            assert [response.error_code for response in responses] == [1, 2, 3]
            names = [seen.name for seen in peer.requests if seen.name != HANDSHAKE]
            assert names == [AUTHENTICATE, *[AUTHENTICATE, "HeartbeatRequest"] * 3]
            connection.close()

    asyncio.run(main())


class Granting:
    """A connection to a broker that accepts every login for a while."""

    peer = Peer("broker", 9092, 1)

    def __init__(self, lifetime_ms: int) -> None:
        self.lifetime_ms = lifetime_ms

    def version_for(self, message: type[Message], lowest: int = 0, highest: int | None = None) -> int:
        return 1

    async def ask(self, message: Message, version: int, deadline: float) -> Message:
        if message.NAME == HANDSHAKE:
            return SaslHandshakeResponse(mechanisms=["PLAIN"])
        return token(session_lifetime_ms=self.lifetime_ms)

    async def exchange_raw(self, token: bytes, deadline: float) -> bytes:
        raise AssertionError("no raw token belongs here")


def renewal(lifetime_ms: int, seed: int = 1) -> float | None:
    credentials, runtime = Credentials("PLAIN", "alice", Secret(PASSWORD)), Runtime(rng=random.Random(seed))
    return asyncio.run(Authenticator(credentials, runtime, 5.0)(Granting(lifetime_ms)))  # type: ignore[arg-type]


@pytest.mark.spec("B.4.12")
def test_the_moment_of_renewal_is_random_between_85_and_95_percent() -> None:
    moments = [renewal(100_000, seed) or 0.0 for seed in range(40)]
    assert 85 <= min(moments) < 87
    assert 93 < max(moments) <= 95


@pytest.mark.spec("H-25")
@pytest.mark.parametrize(
    ("lifetime", "earliest", "latest"),
    [(60.0, 51.0, 57.0), (20.0, 17.0, 19.0), (5.0, 4.0, 4.0), (2.0, 1.2, 1.2), (1.0, 0.85, 0.85)],
)
def test_a_session_is_renewed_a_second_before_its_end(
    lifetime: float, earliest: float, latest: float
) -> None:
    """A request behind a Fetch that waits for records is handled up to half a second late, and not after the end."""
    found = [renewal(int(lifetime * 1000), seed) for seed in range(50)]
    assert all(each is not None and earliest - 1e-9 <= each <= latest + 1e-9 for each in found)


@pytest.mark.parametrize("lifetime_ms", [0, -1, -(2**63)])
def test_a_lifetime_that_is_none_means_no_limit(lifetime_ms: int) -> None:
    assert renewal(lifetime_ms) is None


@pytest.mark.spec("B.4.12", "B.4.8")
def test_a_renewal_that_is_refused_ends_the_connection_with_the_reason(short_sessions: None) -> None:
    async def main() -> None:
        no = On(AUTHENTICATE, token(error_code=SASL_AUTHENTICATION_FAILED, error_message="revoked"))
        steps = [handshake("PLAIN"), On(AUTHENTICATE, token(session_lifetime_ms=200)), handshake("PLAIN"), no]
        async with ScriptedBroker(*steps) as peer:
            connection = await connect(peer, authenticate=who("PLAIN"))
            await asyncio.sleep(0.2)
            with pytest.raises(AuthenticationError, match="revoked"):
                await beat(connection)
            assert connection.closed
            assert isinstance(connection.reason, AuthenticationError)

    asyncio.run(main())


# --- what users see --------------------------------------------------------------------------------------------------


def config(address: str, **keys: Any) -> Config:
    user = {"sasl_username": "alice", "sasl_password": PASSWORD, "allow_plaintext_credentials": True}
    protocol = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    return load({"bootstrap_servers": address, "client_id": "tester", **protocol, **user, **keys})


@pytest.mark.spec("B.4.8", "B.4.12")
def test_refused_credentials_are_fatal_at_once_and_tried_once() -> None:
    """Three servers, one password: a second attempt could only lock the account."""

    async def main() -> None:
        no = token(error_code=SASL_AUTHENTICATION_FAILED, error_message="Invalid username or password")
        async with ScriptedBroker() as one, ScriptedBroker() as two:
            for peer in (one, two):
                peer.default_responses = {
                    HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
                    AUTHENTICATE: no,
                }
            cluster = Cluster(config(f"{one.address},{two.address}"), Runtime())
            errors: list[type[KclientError]] = []
            for _ in range(50):
                try:
                    await cluster.start()
                except KclientError as exc:
                    errors.append(type(exc))
            await cluster.close(1.0)
            assert errors == [AuthenticationError] * 50
            assert len(one.of(AUTHENTICATE)) <= 1
            assert len(two.of(AUTHENTICATE)) <= 1

    asyncio.run(main())


@pytest.mark.spec("B.4.8", "B.4.12")
def test_credentials_that_are_right_at_last_leave_nothing_of_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker, "REFUSED_SECONDS", 0.1)

    async def main() -> None:
        no = token(error_code=SASL_AUTHENTICATION_FAILED, error_message="not yet")
        beat = On("HeartbeatRequest", HeartbeatResponse(error_code=7))
        yes = On(AUTHENTICATE, token())
        async with ScriptedBroker(yes, yes, On(AUTHENTICATE, no), beat, beat, topics={"orders": 1}) as peer:
            peer.default_responses |= {
                HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
                AUTHENTICATE: token(),
            }
            keys = {
                "reconnect_backoff_ms": 50,
                "metadata_recovery_strategy": "none",
            }  # which would make new nodes
            cluster = Cluster(config(peer.address, **keys), Runtime())
            await cluster.start()
            peer.drop_connections()
            await asyncio.sleep(0.01)
            with pytest.raises(AuthenticationError, match="not yet"):
                await cluster.request(peer.node_id, HeartbeatRequest())
            await asyncio.sleep(0.11)
            assert await cluster.request(peer.node_id, HeartbeatRequest()) == beat.answer
            peer.drop_connections()
            await asyncio.sleep(0.01)  # the client sees it, and backs off
            assert await cluster.request(peer.node_id, HeartbeatRequest()) == beat.answer
            await cluster.close(1.0)

    asyncio.run(main())


@pytest.mark.spec("B.4.8", "B.4.12")
def test_while_a_renewal_was_refused_requests_fail_at_once(short_sessions: None) -> None:
    async def main() -> None:
        no = On(AUTHENTICATE, token(error_code=SASL_AUTHENTICATION_FAILED, error_message="revoked"))
        yes = On(AUTHENTICATE, token(session_lifetime_ms=300))
        async with ScriptedBroker(yes, yes, no, topics={"orders": 1}) as peer:
            peer.default_responses |= {
                HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
                AUTHENTICATE: no.answer,
            }
            cluster = Cluster(config(peer.address), Runtime())
            await cluster.start()
            await asyncio.sleep(0.3)
            with within(2.0):
                for _ in range(20):
                    with pytest.raises(AuthenticationError, match="revoked"):
                        await cluster.request(peer.node_id, HeartbeatRequest())
            assert len(peer.of(AUTHENTICATE)) <= 4
            await cluster.close(1.0)

    asyncio.run(main())


@pytest.mark.spec("B.1.3", "B.4.12")
@pytest.mark.parametrize("mechanism", ALL)
def test_the_configuration_leads_to_the_conversation(mechanism: str) -> None:
    jaas = {
        "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
        "SCRAM": "org.apache.kafka.common.security.scram.ScramLoginModule",
    }[mechanism[:5]]
    line = f'{jaas} required username="alice" password="{PASSWORD}";'

    async def main() -> None:
        for keys in ({}, {"sasl_username": None, "sasl_password": None, "sasl_jaas_config": line}):
            steps: list[On] = []
            for _ in range(2):  # the bootstrap server, then the broker itself
                steps += (
                    [
                        handshake("PLAIN"),
                        On(AUTHENTICATE, token(), check=lambda r: PASSWORD.encode() in r.auth_bytes),
                    ]
                    if mechanism == "PLAIN"
                    else scram_steps(mechanism)
                )
            async with ScriptedBroker(*steps, topics={"orders": 1}) as peer:
                cluster = Cluster(config(peer.address, sasl_mechanism=mechanism, **keys), Runtime())
                await cluster.start()
                await cluster.close(1.0)

    asyncio.run(main())
