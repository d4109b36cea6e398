"""An HTTP proxy on loopback that fails: some requests get no answer, a late one, or an error, applied or not.

    with FaultyProxy(s3.server.endpoint) as proxy:
        proxy.fail("PUT", "_manifest/", "drop after")      # the next such request is applied, and its answer is lost

| fault | the request | the client sees |
|---|---|---|
| `500`, `503`, `409`, `429` | is not passed on | this status |
| `500 after` | is applied | 500 |
| `drop` | is not passed on | a broken connection |
| `drop after` | is applied | a broken connection |
| `late` | is applied | nothing for `delay` seconds |
| `lie` | is not passed on | 200, as if it was applied |
| `slow` | is applied | the answer in two pieces, `delay` seconds apart |
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import attrs

SIZES = {"content-length", "transfer-encoding", "expect"}
ETAG = '"d41d8cd98f00b204e9800998ecf8427e"'
STORED = f"<CompleteMultipartUploadResult><ETag>{ETAG}</ETag></CompleteMultipartUploadResult>".encode()

Kind = Literal["500", "503", "409", "429", "500 after", "drop", "drop after", "late", "lie", "slow"]


@attrs.define
class Rule:
    """A fault for the next `times` requests of a method in whose path the regular expression `part` is found."""

    method: str
    part: str
    kind: Kind
    times: int
    seen: int = 0


class FaultyProxy:
    """Passes requests on to `upstream`, a URL with host and port. A context manager."""

    def __init__(self, upstream: str, delay: float = 3.0) -> None:
        self.delay = delay
        self.requests: list[tuple[str, str]] = []
        self.choose: Callable[[str, str], Kind | None] = self._by_rule
        self._upstream = urlsplit(upstream).netloc
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                proxy.handle(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - the names of methods

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, method: str, part: str, kind: Kind, times: int = 1) -> Rule:
        """Let the next requests fail; return the rule, which counts them."""
        rule = Rule(method, part, kind, times)
        self._rules.append(rule)
        return rule

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = _body(request)
        with self._lock:
            self.requests.append((request.command, request.path))
            kind = self.choose(request.command, request.path)
        if kind in ("500", "503", "409", "429"):
            answer(request, int(kind), b"")
        elif kind == "drop":
            _drop(request)
        elif kind == "lie":
            answer(request, 200, STORED if request.command == "POST" else b"", {"ETag": ETAG})
        else:
            self._pass_on(request, body, kind)

    def headers_of(self, request: BaseHTTPRequestHandler, body: bytes) -> dict[str, str]:
        """Return the headers with which a request is passed on; the length of its body is added."""
        return {name: text for name, text in request.headers.items() if name.lower() not in SIZES}

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes, kind: Kind | None) -> None:
        connection = http.client.HTTPConnection(self._upstream, timeout=60)
        try:
            connection.request(request.command, request.path, body, self.headers_of(request, body))
            found = connection.getresponse()
            content = found.read()
        finally:
            connection.close()
        if kind == "500 after":
            answer(request, 500, b"")
        elif kind == "drop after" or (kind == "late" and self._over.wait(self.delay)):
            _drop(request)
        else:
            pause = self.delay if kind == "slow" else 0
            answer(request, found.status, content, dict(found.getheaders()), lambda: self._over.wait(pause))

    def _by_rule(self, method: str, path: str) -> Kind | None:
        for rule in self._rules:
            if rule.method == method and re.search(rule.part, path) and rule.seen < rule.times:
                rule.seen += 1
                return rule.kind
        return None


def _body(request: BaseHTTPRequestHandler) -> bytes:
    """Read what a request carries, of a length that is given or in chunks."""
    if request.headers.get("Transfer-Encoding") != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    content = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        content += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return content


def answer(
    request: BaseHTTPRequestHandler,
    status: int,
    content: bytes,
    headers: dict[str, str] | None = None,
    between: Callable[[], object] = lambda: None,
) -> None:
    try:
        request.send_response(status)
        for name, value in (headers or {}).items():
            if name.lower() not in {*SIZES, "connection", "date", "server"}:
                request.send_header(name, value)
        given = {name.lower(): value for name, value in (headers or {}).items()}
        length = given.get("content-length", "0") if request.command == "HEAD" else str(len(content))
        request.send_header("Content-Length", length)
        request.end_headers()
        between()
        request.wfile.write(b"" if request.command == "HEAD" else content)
    except OSError:  # the client did not wait
        request.close_connection = True


def _drop(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True
    request.connection.shutdown(socket.SHUT_RDWR)
