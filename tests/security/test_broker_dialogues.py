"""What a broker says in each dialogue about SASL: the same expectations for the embedded cluster and a real 4.3.

A dialogue is a list of requests on one connection; "closed" stands where the broker ends it instead of answering.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster, Listener
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.metadata_request import MetadataRequest
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.protocol.errors import ILLEGAL_SASL_STATE
from kclient.protocol.headers import read_response_header, request_frame
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, response_name
from kclient.security import ScramClient, plain_token
from kclient.security.scram import salted_password

SCRAM = "SCRAM-SHA-256"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "pass,word=1"
CLOSED = "closed"


class Dialogue:
    """One connection to a listener, one request at a time."""

    def __init__(self, address: str, password: str) -> None:
        host, port = address.rsplit(":", 1)
        self.password = password
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._number = 0

    def ask(self, message: Message, version: int) -> Any:
        """The response, or "closed"."""
        self._number += 1
        self.send_raw(
            b"".join(bytes(part) for part in request_frame(message, version, self._number, "t"))[4:]
        )
        frame = self.receive_raw()
        if frame == CLOSED:
            return CLOSED
        key = message.API_KEY or 0
        _, at = read_response_header(key, version, memoryview(frame))
        return read_message(response_name(key), version, memoryview(frame), at)[0]

    def send_raw(self, frame: bytes) -> None:
        try:
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError:
            return  # closed: the next receive says so

    def receive_raw(self) -> Any:
        """A frame, or "closed"."""
        try:
            size = int.from_bytes(self._exactly(4), "big")
            return self._exactly(size)
        except OSError:
            return CLOSED

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        response = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return response if response == CLOSED else (response.error_code, sorted(response.mechanisms))

    def token(self, token: bytes, version: int = 2) -> Any:
        response = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        return (
            response
            if response == CLOSED
            else (response.error_code, response.error_message, response.auth_bytes[:2])
        )

    def metadata(self) -> Any:
        response = self.ask(MetadataRequest(topics=[]), 9)
        return response if response == CLOSED or not response.brokers else response.brokers[0].node_id

    def heartbeat(self) -> Any:
        response = self.ask(HeartbeatRequest(group_id="g"), 3)
        return response if response == CLOSED else response.error_code

    def close(self) -> None:
        self._socket.close()


Open = Callable[[str], Dialogue]


@pytest.fixture(params=["embedded", pytest.param("secure_kafka", marks=pytest.mark.kafka)])
def open_at(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens connections to the listener of a name: PLAINTEXT or SASL_PLAINTEXT."""
    opened: list[Dialogue] = []

    def at(address: str, password: str) -> Dialogue:
        opened.append(Dialogue(address, password))
        return opened[-1]

    if request.param == "embedded":
        listener, users = (
            Listener("SASL_PLAINTEXT", mechanisms=MECHANISMS),
            {"alice": PASSWORD, "bob": PASSWORD},
        )
        ends = {"connections.max.reauth.ms": 60_000}
        with (
            EmbeddedCluster(listeners=[listener], users=users) as cluster,
            EmbeddedCluster(listeners=[listener], users=users, config=ends) as renewed,
        ):
            where = {"RENEWED": renewed.servers("SASL_PLAINTEXT")}
            yield lambda name: at(where.get(name) or cluster.servers(name), PASSWORD)
            for dialogue in opened:
                dialogue.close()
    else:
        kafka = request.getfixturevalue(request.param)
        yield lambda name: at(kafka.at(name), kafka.password)
        for dialogue in opened:
            dialogue.close()


def scram(dialogue: Dialogue, send: Callable[[bytes], Any], receive: Callable[[Any], bytes]) -> None:
    """Log in as alice with SCRAM-SHA-256 over tokens of any framing."""
    client = ScramClient(SCRAM, "alice", "client-nonce")
    challenge = client.challenge(receive(send(client.first())))
    final = client.final(salted_password(SCRAM, dialogue.password, challenge))
    client.verify(receive(send(final)))


def log_in(dialogue: Dialogue, version: int = 2) -> None:
    assert dialogue.handshake(SCRAM)[0] == 0

    def send(token: bytes) -> Any:
        return dialogue.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def receive(response: Any) -> bytes:
        assert (response.error_code, response.error_message) == (0, "")
        return response.auth_bytes

    scram(dialogue, send, receive)


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_scram_in_every_version_leads_to_the_broker(open_at: Open, version: int) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    log_in(dialogue, version)
    assert dialogue.metadata() == 1


@pytest.mark.spec("B.4.12")
def test_tokens_without_headers_after_version_0_of_the_handshake(open_at: Open) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    assert dialogue.handshake(SCRAM, 0)[0] == 0
    scram(dialogue, dialogue.send_raw, lambda _: dialogue.receive_raw())
    assert dialogue.metadata() == 1


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_versions_are_reported_before_authentication(open_at: Open, listener: str) -> None:
    keys = {api.api_key for api in open_at(listener).ask(ApiVersionsRequest(
        client_software_name="t", client_software_version="1"), 3).api_keys}  # fmt: skip
    assert {17, 36, 3} <= keys


@pytest.mark.spec("B.4.12")
def test_a_mechanism_that_is_not_offered_ends_the_connection_after_its_response(open_at: Open) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    code, offered = dialogue.handshake("GSSAPI")
    assert code == 33
    assert SCRAM in offered
    assert dialogue.handshake(SCRAM) == CLOSED


WORDS = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
)


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_wrong_proof_is_reported_and_ends_the_connection(open_at: Open, version: int) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    assert dialogue.handshake(SCRAM)[0] == 0
    client = ScramClient(SCRAM, "alice", "client-nonce")
    first = dialogue.ask(SaslAuthenticateRequest(auth_bytes=client.first()), version)
    final = client.final(salted_password(SCRAM, "wrong", client.challenge(first.auth_bytes)))
    assert dialogue.token(final, version) == (58, WORDS, b"")
    assert dialogue.metadata() == CLOSED


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize(
    "first", [b"n,,n=mallory,r=nonce", b"n,,r=nonce", b"y,,n=alice,r=nonce", b"", b"nonsense"]
)
def test_an_unknown_user_and_a_token_that_is_none_are_reported_the_same(open_at: Open, first: bytes) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    assert dialogue.handshake(SCRAM)[0] == 0
    assert dialogue.token(first) == (58, WORDS, b"")
    assert dialogue.metadata() == CLOSED


@pytest.mark.spec("B.4.12")
def test_a_listener_without_sasl_says_that_it_is_out_of_place_and_continues(open_at: Open) -> None:
    dialogue = open_at("PLAINTEXT")
    assert dialogue.handshake(SCRAM) == (34, [])
    assert dialogue.token(b"x")[0] == 34
    assert dialogue.metadata() == 1


@pytest.mark.spec("B.4.12")
def test_a_request_before_authentication_ends_the_connection_midway_after_its_response(open_at: Open) -> None:
    assert open_at("SASL_PLAINTEXT").metadata() == CLOSED
    midway = open_at("SASL_PLAINTEXT")
    assert midway.handshake(SCRAM)[0] == 0
    assert midway.heartbeat() == ILLEGAL_SASL_STATE
    assert midway.metadata() == CLOSED


@pytest.mark.spec("B.4.12")
def test_a_token_before_the_handshake_ends_the_connection(open_at: Open) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    assert dialogue.token(plain_token("alice", PASSWORD)) == CLOSED


@pytest.mark.spec("B.4.12")
def test_a_second_handshake_midway_ends_the_connection_after_its_response(open_at: Open) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    assert dialogue.handshake(SCRAM)[0] == 0
    assert dialogue.handshake(SCRAM) == (34, [])
    assert dialogue.metadata() == CLOSED


@pytest.mark.spec("B.4.12")
def test_where_sessions_do_not_end_a_later_handshake_is_out_of_place(open_at: Open) -> None:
    dialogue = open_at("SASL_PLAINTEXT")
    log_in(dialogue)
    assert dialogue.handshake(SCRAM) == (34, [])
    late = "SaslAuthenticate request received after successful authentication"
    assert dialogue.token(b"x") == (34, late, b"")
    assert dialogue.metadata() == 1


# --- sessions that end -----------------------------------------------------------------------------------------------


def renew(dialogue: Dialogue, name: str = "alice", mechanism: str = SCRAM) -> Any:
    """Authenticate on a connection that is authenticated; code and words of the first refusal, else the lifetime."""
    code, _ = dialogue.handshake(mechanism)
    if code:
        return code
    client = ScramClient(mechanism, name, "client-nonce")
    first = dialogue.ask(SaslAuthenticateRequest(auth_bytes=client.first()), 2)
    if first == CLOSED or first.error_code:
        return first if first == CLOSED else (first.error_code, first.error_message)
    final = client.final(salted_password(mechanism, dialogue.password, client.challenge(first.auth_bytes)))
    last = dialogue.ask(SaslAuthenticateRequest(auth_bytes=final), 2)
    if last == CLOSED or last.error_code:
        return last if last == CLOSED else (last.error_code, last.error_message)
    return last.session_lifetime_ms


@pytest.mark.spec("B.4.12")
def test_a_session_is_renewed_on_the_connection_and_not_twice_within_a_second(open_at: Open) -> None:
    dialogue = open_at("RENEWED")
    log_in(dialogue)
    assert renew(dialogue) == 60_000
    assert renew(dialogue) == ILLEGAL_SASL_STATE
    assert dialogue.metadata() == 1
    time.sleep(1.1)
    assert renew(dialogue) == 60_000
    assert dialogue.metadata() == 1


@pytest.mark.spec("B.4.12")
def test_a_session_is_not_renewed_for_another_user(open_at: Open) -> None:
    dialogue = open_at("RENEWED")
    log_in(dialogue)
    words = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert renew(dialogue, "bob") == (58, words)
    assert dialogue.metadata() == CLOSED


@pytest.mark.spec("B.4.12")
def test_a_session_is_not_renewed_by_another_mechanism(open_at: Open) -> None:
    dialogue = open_at("RENEWED")
    log_in(dialogue)
    assert renew(dialogue, mechanism="SCRAM-SHA-512") == CLOSED
