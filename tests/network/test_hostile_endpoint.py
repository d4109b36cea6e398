"""Token endpoints that want to harm a client: odd HTTP, odd JSON, answers without an end, and what errors show."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from kclient import OAuthToken
from kclient.config import load
from kclient.network.backoff import Backoff
from kclient.network.token_endpoint import MOST_BYTES
from kclient.network.token_providers import token_source_of
from kclient.network.token_source import RefreshTiming, TokenSource
from kclient.runtime import Runtime
from kclient.security.oauthbearer import TokenError, TokenUnavailableError, unsecured_token

SECRET = "canary-a3f8c1"
TOKEN = unsecured_token({"sub": "canary-subject", "exp": 4e9})
ODD_ID = "reader\r\nX-Evil: 1\r\n\r\nPOST /token HTTP/1.1"


class RawServer:
    """Answers every request with these bytes, the last of them again and again if it is `endless`."""

    def __init__(self, answer: bytes, *, endless: bytes = b"") -> None:
        self._answer, self._endless = answer, endless
        self.received: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/token"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    self._exchange(connection)

    def _exchange(self, connection: socket.socket) -> None:
        got = b""
        while b"grant_type" not in got:
            got += connection.recv(65_536)
        self.received.append(got)
        connection.sendall(self._answer)
        while self._endless:
            connection.sendall(self._endless)

    def close(self) -> None:
        self._listener.close()


@contextmanager
def answering(answer: bytes, **options: Any) -> Iterator[RawServer]:
    server = RawServer(answer, **options)
    try:
        yield server
    finally:
        server.close()


def whole(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def as_json(**found: Any) -> bytes:
    return whole("200 OK", json.dumps(found).encode())


def source_of(url: str, client_id: str = "reader") -> TokenSource:
    keys = {
        "bootstrap.servers": "broker.test:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.retry.backoff.ms": "1",
        "sasl.login.retry.backoff.max.ms": "1",
        "sasl.login.connect.timeout.ms": "500",
        "sasl.login.read.timeout.ms": "500",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": client_id,
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    }
    return token_source_of(load(keys), Runtime())


def fetch(url: str, client_id: str = "reader") -> OAuthToken:
    async def scenario() -> OAuthToken:
        source = source_of(url, client_id)
        try:
            return await source.token()
        finally:
            await source.close(1.0)

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def refused(url: str) -> TokenError:
    began = time.monotonic()
    with pytest.raises(TokenError) as caught:
        fetch(url)
    assert time.monotonic() - began < 10
    found = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = "".join(line for line in found.format() if __file__ not in line)
    assert "_request" in ours
    for secret in (SECRET, TOKEN, TOKEN.split(".")[1], "cmVhZGVyOmNhbmFyeS1hM2Y4YzE"):
        assert secret not in ours
    assert len(str(caught.value)) < 1_000
    return caught.value


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (whole("204 No Content", b""), "answered HTTP 204 without an access_token"),
        (whole("202 Accepted", b"{}"), "answered HTTP 202 without an access_token"),
        (whole("304 Not Modified", b""), "304, which sends elsewhere"),
        (whole("307 x", b"", "Location: http://127.0.0.1:1/"), "307, which sends elsewhere"),
        (as_json(access_token=TOKEN + "\r\nX: y"), "cannot be used: a token has letters"),
        (as_json(access_token="a\x01b", expires_in=60), "cannot be used: a token has letters"),
        (as_json(access_token="opaque", expires_in=10**400), "cannot be used"),
        (as_json(access_token="opaque", expires_in=[60]), "cannot be used"),
        (as_json(access_token={"token": TOKEN}, id_token=[TOKEN]), "without an access_token"),
        (as_json(access_token=unsecured_token({"exp": 10**400})), "a time that no clock reaches"),
        (as_json(access_token=unsecured_token({"exp": float("inf")})), "cannot be used: expires_at"),
        (
            as_json(access_token=unsecured_token({"exp": 4e9, "iat": float("inf")})),
            "cannot be used: issued_at",
        ),
        (
            as_json(access_token=unsecured_token({"exp": 4e9, "iat": float("nan")})),
            "cannot be used: issued_at",
        ),
        (
            as_json(access_token=unsecured_token({"exp": 4e9, "iat": 5e9})),
            "the clock of this machine is wrong",
        ),
        (whole("200 OK", b"[" * 200_000), "without an access_token"),
        (whole("200 OK", b'{"access_token":' + b"9" * 100_000 + b"}"), "without an access_token"),
        (whole("401 No", json.dumps({"error": f"{SECRET} is wrong"}).encode()), "HTTP 401 (*** is wrong)"),
    ],
)
def test_an_odd_answer_is_an_error_that_shows_nothing(answer: bytes, text: str) -> None:
    with answering(answer) as server:
        error = refused(server.url)
    assert text in str(error)
    assert not isinstance(error, TokenUnavailableError)


@pytest.mark.parametrize(
    ("answer", "endless", "text"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: " + b"x" * 1_000 + b"\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65_536, "does not speak HTTP"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "it took longer than 1 s"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"zz\r\n", "in the middle of the answer"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"X: y\r\n",
            "it took longer than 1 s",
        ),
        (b"SSH-2.0-OpenSSH\r\n", b"", "does not speak HTTP"),
        (as_json(access_token=TOKEN)[:-20], b"", "the connection ended in the middle of the answer"),
        (b"", b"", "Remote end closed connection"),
    ],
)
def test_an_answer_without_an_end_or_cut_off_costs_its_time_and_no_more(
    answer: bytes, endless: bytes, text: str
) -> None:
    with answering(answer, endless=endless) as server:
        error = refused(server.url)
    assert text in str(error)
    assert isinstance(error, TokenUnavailableError)


def test_a_body_that_is_too_large_is_not_read() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(chunked, endless=b"%x\r\n%b\r\n" % (MOST_BYTES, b" " * MOST_BYTES)) as server:
        assert "answered more than 1 MiB" in str(refused(server.url))


def test_a_name_that_dns_cannot_have_is_named() -> None:
    assert "its name is none that DNS can have" in str(refused("https://login..example/token"))


def test_a_client_id_cannot_add_headers_or_a_second_request() -> None:
    with answering(as_json(access_token=TOKEN)) as server:
        fetch(server.url, ODD_ID)
    (request,) = server.received
    head, _, body = request.partition(b"\r\n\r\n")
    assert b"Evil" not in request
    assert head.count(b"POST") == 1
    assert body == b"grant_type=client_credentials"


def test_a_token_that_is_due_at_once_is_not_requested_in_a_loop() -> None:
    """A provider that says of each token that it ends soon: two seconds are the least that counts."""
    calls: list[float] = []

    async def scenario() -> None:
        async def provider() -> OAuthToken:
            calls.append(time.monotonic())
            return OAuthToken(value="t", expires_at=time.time() + 2.05)

        runtime = Runtime()
        source = TokenSource(provider, RefreshTiming(), Backoff(100, 1_000, runtime.rng), runtime, 5.0)
        await source.token()
        await asyncio.sleep(2.5)
        await source.close(1.0)

    asyncio.run(scenario())
    assert len(calls) <= 3
