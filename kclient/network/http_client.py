"""HTTP requests in which everything has a bound, for token endpoints and schema registries.

An exchange has one deadline, from the connection to the last byte, because a server that sends a byte a second keeps
each receive from timing out. Redirects are not followed: they would carry the credentials along. Proxies come from the
environment (`https_proxy`, `no_proxy`), as everywhere in Python. Loopback needs none, and what is sent there without
TLS must not leave this machine by way of one.

    answer = exchange(url, headers, most=…, seconds=10.0)

    name → connect → TLS → request → headers → body      a timer shuts the connection down, whatever it waits for

These calls block, so a worker thread makes them.
"""

from __future__ import annotations

import socket  # noqa: TID251 (urllib has sockets of its own, which nothing else can end)
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from threading import Lock, Timer  # noqa: TID251 (and it blocks, so another thread must)
from types import TracebackType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kclient.config.oauth import is_loopback
from kclient.security.secret import HiddenBytes


class HttpDeadline:
    """Shuts down the connections of one exchange when its time is over. `connect_seconds` is for each address."""

    def __init__(self, seconds: float, connect_seconds: float | None = None) -> None:
        self.seconds = seconds
        self.connect_seconds: Final = seconds if connect_seconds is None else connect_seconds
        self.is_over: bool = False
        self._lock = Lock()
        self._open: list[socket.socket] = []
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> HttpDeadline:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            for each in self._open:
                each.close()
            self._open.clear()

    def connect(self, address: tuple[str, int], *_: Any, **__: Any) -> socket.socket:
        """Connect as `socket.create_connection` does, whose timeout applies to each address of a name.

        Raises OSError.
        """
        problem: OSError = OSError("the name has no address")
        for *_kind, found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            if self.is_over:
                raise TimeoutError("timed out")
            try:
                made = socket.create_connection((str(found[0]), address[1]), self.connect_seconds)
            except OSError as exc:
                problem = exc
                continue
            made.settimeout(self.seconds)
            self._watch(made)
            return made
        raise problem

    def _watch(self, made: socket.socket) -> None:
        twin = made.dup()  # TLS takes the first one over
        with self._lock:
            self._open.append(twin)
        if self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        with self._lock:
            for each in self._open:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the other side has gone already


class BoundedRequest(urllib.request.Request):
    """A request that has a deadline."""

    deadline: HttpDeadline


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_maker(HTTPConnection, req), req)


class _Secure(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(context=context)
        self._settings = {} if context is None else {"context": context}

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_maker(HTTPSConnection, req), req, **self._settings)


class _Proxies(urllib.request.ProxyHandler):
    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002 (its name)
        if is_loopback(urlsplit(f"//{req.host}").hostname or ""):
            return None
        return super().proxy_open(req, proxy, type)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Do not follow: the response stays an error."""


def _maker(kind: type[HTTPConnection], request: urllib.request.Request) -> Any:
    def make(host: str, **settings: Any) -> HTTPConnection:
        connection = kind(host, **settings)
        if isinstance(request, BoundedRequest):
            connection._create_connection = request.deadline.connect  # type: ignore[attr-defined]
        return connection

    return make


def bounded_opener(context: ssl.SSLContext | None = None) -> urllib.request.OpenerDirector:
    """Return an opener of bounded requests. `context` verifies servers; without it Python's default does."""
    return urllib.request.build_opener(_Proxies, _NoRedirect, _Plain, _Secure(context))


# --- one exchange ----------------------------------------------------------------------------------------------------


class HttpAnswer(NamedTuple):
    """Status and body, cut at `most` bytes and one."""

    status: int
    body: HiddenBytes


class HttpError(OSError):
    """There was no answer. The text says why; it has no part of the request."""


class HttpCertificateError(HttpError):
    """The server's certificate is not trusted, or is for another name."""


def exchange(
    url: str,
    headers: Mapping[str, str],
    *,
    body: bytes | None = None,
    most: int,
    seconds: float,
    connect_seconds: float | None = None,
    context: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """Send a GET, or a POST of `body`, and return the answer, whatever its status. Raise HttpError without one.

    Everything that was sent may be secret, and no local variable shows it.
    """
    with HttpDeadline(seconds, connect_seconds) as deadline:
        request = BoundedRequest(url, data=body, headers=dict(headers))
        request.deadline = deadline
        try:
            answer = _answer_of(bounded_opener(context), request, seconds, most)
        except (OSError, HTTPException, UnicodeError) as exc:  # UnicodeError: a name that cannot be looked up
            kind = (
                HttpCertificateError if isinstance(_cause(exc), ssl.SSLCertVerificationError) else HttpError
            )
            raise kind(_why(exc, deadline)) from None
    if deadline.is_over:  # what was read is a part of it
        raise HttpError(_why(TimeoutError(), deadline))
    return answer


def _answer_of(
    opener: urllib.request.OpenerDirector, request: BoundedRequest, seconds: float, most: int
) -> HttpAnswer:
    try:
        with opener.open(request, timeout=seconds) as response:
            return HttpAnswer(response.status, _body_of(response, most))
    except urllib.error.HTTPError as exc:
        with exc:
            return HttpAnswer(exc.code, HiddenBytes(exc.read(most + 1)))


ENDED: Final = "the connection ended in the middle of the answer"


def _body_of(response: HTTPResponse, most: int) -> HiddenBytes:
    """Return the body. Raise OSError if the connection ended in the middle of it: `read` with a size does not."""
    body = HiddenBytes(response.read(most + 1))
    if response.length and len(body) <= most:
        raise OSError(ENDED)
    return body


def _cause(problem: Exception) -> object:
    return problem.reason if isinstance(problem, urllib.error.URLError) else problem


def _why(problem: Exception, deadline: HttpDeadline) -> str:
    if deadline.is_over:
        return f"it took longer than {deadline.seconds:g} s"
    reason = _cause(problem)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return reason.verify_message
    if isinstance(reason, IncompleteRead):
        return ENDED
    if isinstance(reason, UnicodeError):
        return "its name is none that DNS can have"
    if isinstance(reason, TimeoutError):
        return f"it cannot be connected to within {deadline.connect_seconds:g} s"
    if isinstance(reason, OSError):
        return reason.strerror or str(reason) or type(reason).__name__
    return f"it does not speak HTTP ({type(reason).__name__})"
