"""An OAuth 2 authorization server on loopback: a token endpoint, a JWKS, and the faults of both.

    with AuthorizationServer(clients={"id": "secret"}) as server:
        server.token_url, server.jwks_url             # POST /token, GET /jwks
        server.lifetime, server.issuer = 60, "me"     # of the tokens that follow; see the attributes
        server.claims["aud"] = None                   # a claim more, another one, or one less
        server.answer_with(refusal(401, "invalid_client"), times=2)   # instead of the next two tokens
        server.delay = 5.0                            # the right answer, late
        server.requests[-1].form["scope"]             # what came in, oldest first
        token = server.sign({"sub": "alice"}, lifetime=60)

| grant_type | proof of the client |
|---|---|
| client_credentials | HTTP Basic (raw, or URL-encoded as RFC 6749 2.3.1 says), or client_assertion (RFC 7523 2.2) |
| urn:ietf:params:oauth:grant-type:jwt-bearer | assertion (RFC 7523 2.1) |

An assertion must be signed by one of `assertion_keys` (whose ids are not compared), name this endpoint or
`audience_of_assertions` as its audience, and not have expired.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import attrs

from tests.security.signed_tokens import SigningKey, ec_key, rsa_key

CLIENT_CREDENTIALS: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MOST_FORM_BYTES: Final = 1 << 20
SOCKET_SECONDS: Final = 30.0
PAUSE: Final = 0.05  # seconds between the pieces of a trickle
HIDDEN: Final = frozenset({"authorization", "assertion", "client_assertion", "client_secret"})


# --- answers instead of a token


@attrs.frozen
class Answer:
    """An answer that a test chooses.

    `body` is sent as it is; with `trickle` in pieces of so many bytes, a moment after each other; `endless` repeats it
    until the client or the test ends; `close` ends the connection without an answer. `delay` is waited first.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    trickle: int = 0
    endless: bool = False
    close: bool = False


def refusal(status: int, error: str, description: str = "", **headers: str) -> Answer:
    """What RFC 6749, 5.2 says: a JSON object with `error` and `error_description`."""
    found = {"error": error} | ({"error_description": description} if description else {})
    return Answer(status, json.dumps(found).encode(), {"Content-Type": "application/json", **headers})


def unavailable(status: int = 503, retry_after: str | None = None) -> Answer:
    """503 or 429, of a gateway that sends HTML."""
    return Answer(status, b"<html>busy</html>", {} if retry_after is None else {"Retry-After": retry_after})


def redirect(url: str, status: int = 302) -> Answer:
    return Answer(status, headers={"Location": url})


def json_answer(found: Any, **changes: Any) -> Answer:
    """200 with this JSON: a token of another kind, or none."""
    return Answer(body=json.dumps(found).encode(), headers={"Content-Type": "application/json"}, **changes)


def opaque(token: str = "opaque-token", expires_in: float | str | None = 60) -> Answer:
    """A token that is no JWT, and perhaps how long it lives."""
    ends = {} if expires_in is None else {"expires_in": expires_in}
    return json_answer({"access_token": token, "token_type": "Bearer", **ends})


GARBAGE: Final = Answer(body=b"\x00\xff{not json", headers={"Content-Type": "application/json"})
ENDLESS: Final = Answer(body=b" " * 65_536, endless=True)
CLOSED: Final = Answer(close=True)


def trickling(body: bytes = b'{"access_token":"never whole"}') -> Answer:
    """A body that arrives byte by byte."""
    return Answer(body=body, trickle=1)


# --- what came in


def _hidden(values: Mapping[str, str]) -> str:
    return repr({name: "***" if name.lower() in HIDDEN else value for name, value in values.items()})


@attrs.frozen
class HttpRequest:
    """A request; its secrets are not in the repr."""

    method: str
    path: str
    headers: Mapping[str, str] = attrs.field(repr=_hidden)  # names in lower case
    form: Mapping[str, str] = attrs.field(repr=_hidden)


class RefusedError(Exception):
    """The request is answered by this refusal."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def _refuse(status: int, error: str, description: str = "") -> RefusedError:
    return RefusedError(refusal(status, error, description))


# --- the server


class AuthorizationServer:
    """See the module. With `tls`, a server's context, the URLs are https and name `host`."""

    def __init__(
        self,
        clients: Mapping[str, str] | None = None,
        *,
        keys: Sequence[SigningKey] | None = None,
        assertion_keys: Sequence[SigningKey] = (),
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.clients = dict(clients or {})
        self.keys = list(keys or (rsa_key(), ec_key()))  # the first one signs; all are in the JWKS
        self.assertion_keys = list(assertion_keys)
        self.audience_of_assertions: str | None = None
        self.issuer: str = "https://issuer.test"
        self.audience: str | Sequence[str] = "kafka"
        self.lifetime = 60.0  # seconds
        self.skew = 0.0  # seconds that the clock of the tokens is ahead of ours
        self.claims: dict[str, Any] = {}  # replace those of the tokens; None removes one
        self.delay = 0.0  # seconds before each answer of the token endpoint
        self.requests: list[HttpRequest] = []
        self.signed: list[str] = []  # every token that it made
        self.stopped = threading.Event()
        self._answers: list[tuple[Answer, int | None]] = []
        self._lock = threading.Lock()
        self._host, self._tls = host, tls

    # --- life

    def __enter__(self) -> Self:
        self._server = _HttpServer(("127.0.0.1", 0), _handler(self))
        if self._tls is not None:  # the handshake is made by the thread of the connection
            self._server.socket = self._tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self._host}:{self.port}"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    # --- what a test does to it

    def sign(
        self, claims: Mapping[str, Any], lifetime: float | None = None, key: SigningKey | None = None
    ) -> str:
        """A token with the server's claims and these; a claim that is None is left out."""
        now = time.time() + self.skew
        ends = now + (self.lifetime if lifetime is None else lifetime)
        standard = {"iss": self.issuer, "aud": self.audience, "iat": now, "nbf": now, "exp": ends}
        found = {**standard, **self.claims, **claims}
        whole = {
            name: int(value) if name in ("iat", "nbf", "exp") and isinstance(value, float) else value
            for name, value in found.items()
            if value is not None
        }
        self.signed.append((key or self.keys[0]).sign(whole))
        return self.signed[-1]

    def jwks(self) -> dict[str, Any]:
        """The public keys, as GET /jwks sends them."""
        return {"keys": [key.jwk() for key in self.keys]}

    def answer_with(self, answer: Answer, times: int | None = None) -> None:
        """Send this instead of a token, for so many requests or until `answer_normally`; several calls form a queue."""
        with self._lock:
            self._answers.append((answer, times))

    def answer_normally(self) -> None:
        with self._lock:
            self._answers.clear()

    def token_requests(self) -> list[HttpRequest]:
        """The requests for tokens, oldest first."""
        return [request for request in self.requests if request.path == "/token"]

    # --- what it answers

    def answer(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        if (request.method, request.path) == ("GET", "/jwks"):
            return json_answer(self.jwks())
        if (request.method, request.path) != ("POST", "/token"):
            return Answer(404)
        if (chosen := self._chosen()) is not None:
            return chosen
        try:
            return json_answer(self._grant(request), delay=self.delay)
        except RefusedError as exc:
            return exc.answer

    def _chosen(self) -> Answer | None:
        with self._lock:
            if not self._answers:
                return None
            answer, times = self._answers[0]
            if times is not None:
                self._answers[0] = (answer, times - 1)
                if times <= 1:
                    del self._answers[0]
            return answer

    def _grant(self, request: HttpRequest) -> dict[str, Any]:
        form, grant = request.form, request.form.get("grant_type")
        if grant == CLIENT_CREDENTIALS:
            subject = self._client(request)
        elif grant == JWT_BEARER:
            subject = str(self._assertion(form.get("assertion", ""), 400, "invalid_grant").get("sub"))
        else:
            raise _refuse(400, "unsupported_grant_type", f"no grant {grant}")
        scope = {"scope": form["scope"]} if "scope" in form else {}
        token = self.sign({"sub": subject, **scope, **self.claims})
        return {"access_token": token, "token_type": "Bearer", "expires_in": int(self.lifetime), **scope}

    def _client(self, request: HttpRequest) -> str:
        if request.form.get("client_assertion_type") == ASSERTION_TYPE:
            assertion = request.form.get("client_assertion", "")
            return str(self._assertion(assertion, 401, "invalid_client").get("sub"))
        for name, secret in _basic(request.headers.get("authorization", "")):
            if self.clients.get(name) == secret:
                return name
        raise _refuse(401, "invalid_client", "Client authentication failed")

    def _assertion(self, assertion: str, status: int, error: str) -> dict[str, Any]:
        claims = next(filter(None, (_verified(key, assertion) for key in self.assertion_keys)), None)
        if claims is None:
            raise _refuse(status, error, "The signature of the assertion is not valid")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if not {self.token_url, self.audience_of_assertions or self.token_url} & set(audiences):
            raise _refuse(status, error, f"The assertion is for {audience}")
        expires_at = claims.get("exp")
        if not isinstance(expires_at, int | float) or expires_at <= time.time():
            raise _refuse(status, error, "The assertion has expired")
        if not claims.get("sub") or not claims.get("iss"):
            raise _refuse(status, error, "The assertion has no iss or no sub")
        return claims


def _verified(key: SigningKey, assertion: str) -> dict[str, Any] | None:
    try:
        return key.verified(assertion)
    except ValueError:
        return None


def _basic(header: str) -> Iterator[tuple[str, str]]:
    """The client's id and secret as they are, and URL-decoded."""
    scheme, _, value = header.partition(" ")
    try:
        name, colon, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return
    if scheme.lower() == "basic" and colon:
        yield name, secret
        yield unquote_plus(name), unquote_plus(secret)


# --- HTTP


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or a failed handshake, is not worth a traceback."""


def _handler(server: AuthorizationServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SOCKET_SECONDS

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            self.close_connection = True
            headers = {name.lower(): value for name, value in self.headers.items()}
            size = min(int(headers.get("content-length", "0")), MOST_FORM_BYTES)
            form = dict(parse_qsl(self.rfile.read(size).decode(), keep_blank_values=True))
            self._send(server.answer(HttpRequest(self.command, urlsplit(self.path).path, headers, form)))

        def _send(self, answer: Answer) -> None:
            server.stopped.wait(answer.delay)
            if answer.close:
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if not answer.endless:
                self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in _pieces(answer):
                if server.stopped.is_set():
                    return
                self.wfile.write(piece)
                if answer.trickle:
                    server.stopped.wait(PAUSE)

        def log_message(self, *values: Any) -> None:
            """Keep stderr for the tests."""

    return Handler


def _pieces(answer: Answer) -> Iterator[bytes]:
    if answer.trickle:
        for start in range(0, len(answer.body), answer.trickle):
            yield answer.body[start : start + answer.trickle]
        return
    yield answer.body
    while answer.endless:
        yield answer.body
