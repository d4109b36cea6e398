"""SCRAM: the published examples, an independent implementation on the other side, and every broken message refused."""

from __future__ import annotations

import base64
import secrets

import pytest
import scramp

from kclient.security import ScramClient, ScramError, ScramServer, scram_credential
from kclient.security.scram import Challenge, salted_password

SHA256, SHA512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
MECHANISMS = [SHA256, SHA512]

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def finish(client: ScramClient, password: str, server_first: bytes) -> bytes:
    challenge = client.challenge(server_first)
    return client.final(salted_password(client.mechanism, password, challenge))


@pytest.mark.spec("B.4.12")
def test_the_example_of_rfc_7677_from_both_sides() -> None:
    client = ScramClient(SHA256, "user", NONCE)
    credential = scram_credential(SHA256, "pencil", base64.b64decode(SALT), 4096)
    server = ScramServer(SHA256, {"user": credential}.get, SERVER_NONCE)
    assert client.first() == CLIENT_FIRST
    assert server.step(CLIENT_FIRST) == SERVER_FIRST
    assert finish(client, "pencil", SERVER_FIRST) == CLIENT_FINAL
    assert server.step(CLIENT_FINAL) == SERVER_FINAL
    client.verify(SERVER_FINAL)
    assert (server.done, server.username) == (True, "user")


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "Zoë"])
def test_another_implementation_of_the_server_accepts_us(mechanism: str, user: str) -> None:
    there = scramp.ScramMechanism(mechanism)
    salt, stored, server, iterations = there.make_auth_info("pass,word=1", 5000, b"0123456789abcdef")
    peer = there.make_server(lambda name: (salt, stored, server, iterations))
    client = ScramClient(mechanism, user, secrets.token_urlsafe(24))
    peer.set_client_first(client.first().decode())
    peer.set_client_final(finish(client, "pass,word=1", peer.get_server_first().encode()).decode())
    client.verify(peer.get_server_final().encode())


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_another_implementation_of_the_client_accepts_us_as_server(mechanism: str) -> None:
    credential = scram_credential(mechanism, "secret", secrets.token_bytes(16), 4096)
    server = ScramServer(mechanism, {"bob": credential}.get, secrets.token_urlsafe(24))
    client = scramp.ScramClient([mechanism], "bob", "secret")
    client.set_server_first(server.step(client.get_client_first().encode()).decode())
    client.set_server_final(server.step(client.get_client_final().encode()).decode())
    assert server.done


@pytest.mark.spec("H-22")
@pytest.mark.parametrize(
    ("server_first", "why"),
    [
        (SERVER_FIRST.replace(b"rOpr", b"xOpr", 1), "does not extend ours"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not extend ours"),
        (SERVER_FIRST.replace(b"$k0", b"$k0\x7f", 1), "characters"),
        (SERVER_FIRST.replace(b"$k0", b"$" * 2000, 1), "too long"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "4096 to 131072"),
        (SERVER_FIRST.replace(b"i=4096", b"i=131073"), "4096 to 131072"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5000), "not a number"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-4096"), "not a number"),
        (SERVER_FIRST.replace(b"i=4096", b"i="), "not a number"),
        (SERVER_FIRST.replace(b"i=4096", "i=４０９６".encode()), "not a number"),
        (SERVER_FIRST.replace(SALT.encode(), b""), "salt"),
        (SERVER_FIRST.replace(SALT.encode(), b"QUJD" * 1000), "salt"),
        (SERVER_FIRST.replace(SALT.encode(), b"W22ZaJ0SNY7soEsUEjb6gQ"), "salt"),
        (SERVER_FIRST.replace(SALT.encode(), b"W22Z aJ0="), "salt"),
        (SERVER_FIRST.replace(SALT.encode(), b"W22ZaJ0SNY7soEsUEjb6gR=="), "salt"),
        (b"m=ext," + SERVER_FIRST, "mandatory extension"),
        (SERVER_FIRST + b",m=ext", "mandatory extension"),
        (SERVER_FIRST + b",i=4096", "came twice"),
        (SERVER_FIRST + b",", "expected"),
        (b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096," + SERVER_FIRST.split(b",")[0], "expected"),
        (b"e=unknown-user", "expected"),
        (SERVER_FINAL, "expected"),
        (b"", "expected"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_a_challenge_that_breaks_the_rules_is_refused(server_first: bytes, why: str) -> None:
    client = ScramClient(SHA256, "user", NONCE)
    with pytest.raises(ScramError, match=why):
        client.challenge(server_first)


@pytest.mark.spec("H-22")
@pytest.mark.parametrize(
    ("server_final", "why"),
    [
        (SERVER_FINAL.replace(b"6rri", b"7rri"), "does not know the credential"),
        (b"v=", "signature is empty"),
        (b"v=AAAA", "does not know the credential"),
        (b"v=!!!!", "not base64"),
        (b"", "expected"),
        (b"x=1," + SERVER_FINAL, "expected"),
        (SERVER_FINAL + b"," + SERVER_FINAL, "came twice"),
        (b"e=other-error", "refused the proof"),
        (b"e=other-error," + SERVER_FINAL, "refused the proof"),
        (SERVER_FIRST, "expected"),
    ],
)
def test_a_last_message_without_the_right_signature_is_refused(server_final: bytes, why: str) -> None:
    client = ScramClient(SHA256, "user", NONCE)
    finish(client, "pencil", SERVER_FIRST)
    with pytest.raises(ScramError, match=why):
        client.verify(server_final)


@pytest.mark.spec("H-22")
def test_a_signature_before_the_proof_proves_nothing() -> None:
    client = ScramClient(SHA256, "user", NONCE)
    client.challenge(SERVER_FIRST)
    with pytest.raises(ScramError):
        client.verify(SERVER_FINAL)


@pytest.mark.spec("H-22")
def test_the_cap_on_iterations_is_the_callers() -> None:
    many = SERVER_FIRST.replace(b"i=4096", b"i=200000")
    client = ScramClient(SHA256, "user", NONCE, max_iterations=200_000)
    assert client.challenge(many) == Challenge(base64.b64decode(SALT), 200_000)


def test_an_extension_that_is_optional_is_left_alone() -> None:
    assert ScramClient(SHA256, "user", NONCE).challenge(SERVER_FIRST + b",x=y").iterations == 4096


@pytest.mark.spec("B.4.12")
def test_a_delegation_token_says_so_and_the_server_sees_it() -> None:
    client = ScramClient(SHA256, "token-id", NONCE, token_auth=True)
    assert client.first() == CLIENT_FIRST.replace(b"user", b"token-id") + b",tokenauth=true"
    credential = scram_credential(SHA256, "pencil", b"salt")
    server = ScramServer(SHA256, {"token-id": credential}.get, SERVER_NONCE)
    server.step(client.first())
    assert (server.username, server.token_auth) == ("token-id", True)


def server_for(password: str = "pencil") -> ScramServer:
    credential = scram_credential(SHA256, password, base64.b64decode(SALT), 4096)
    return ScramServer(SHA256, {"user": credential}.get, SERVER_NONCE)


@pytest.mark.parametrize(
    "client_first",
    [
        b"p=tls-unique,,n=user,r=abc",
        b"y,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,r=abc,n=user",
        b"n,,n=,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=",
        b"n,,m=x,n=user,r=abc",
        b"n=user,r=abc",
        b"",
        b"\xff",
    ],
)
def test_the_server_refuses_a_first_message_that_breaks_the_rules(client_first: bytes) -> None:
    with pytest.raises(ScramError):
        server_for().step(client_first)


@pytest.mark.parametrize(
    "client_final",
    [
        CLIENT_FINAL.replace(b"p=dHzb", b"p=eHzb"),
        CLIENT_FINAL.replace(b"c=biws", b"c=eSws"),
        CLIENT_FINAL.replace(b"$k0", b"$k1"),
        CLIENT_FINAL.replace(b",p=", b",q="),
        CLIENT_FINAL.rpartition(b",")[0],
        CLIENT_FINAL.rpartition(b"p=")[0] + b"p=AAAA",
        b"",
    ],
)
def test_the_server_refuses_a_proof_that_is_none(client_final: bytes) -> None:
    server = server_for()
    server.step(CLIENT_FIRST)
    with pytest.raises(ScramError):
        server.step(client_final)
    assert not server.done


def test_an_unknown_user_is_refused_at_once_as_by_kafka() -> None:
    server = ScramServer(SHA256, lambda name: None, SERVER_NONCE)
    with pytest.raises(ScramError, match="no user has this name"):
        server.step(CLIENT_FIRST)
    assert not server.done


def test_a_wrong_password_and_a_token_too_many_are_refused() -> None:
    server = server_for("pencils")
    server.step(CLIENT_FIRST)
    with pytest.raises(ScramError, match="does not fit"):
        server.step(CLIENT_FINAL)
    server = server_for()
    server.step(CLIENT_FIRST)
    server.step(CLIENT_FINAL)
    with pytest.raises(ScramError, match="after the last"):
        server.step(CLIENT_FINAL)
