"""One deadline for a whole HTTP exchange: a server that sends a byte a second keeps each receive from timing out.

with Deadline(10.0) as deadline:                     a timer ends the connection, in whatever it waits
    opener.open(request_of(url, deadline))           name → connect → TLS → request → headers → body
"""

from __future__ import annotations

import socket  # noqa: TID251 (urllib has sockets of its own, which nothing else can end)
import urllib.request
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from threading import Lock, Timer  # noqa: TID251 (and it blocks, so another thread must)
from types import TracebackType
from typing import Any, Final


class Deadline:
    """Ends the connections of one exchange when its time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = Lock()
        self._open: list[socket.socket] = []
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
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
        """In place of `socket.create_connection`, whose time is for each address of a name. Raises OSError."""
        problem: OSError = OSError("the name has no address")
        for *_kind, found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            if self.is_over:
                raise TimeoutError("timed out")
            try:
                made = socket.create_connection((str(found[0]), address[1]), self.seconds)
            except OSError as exc:
                problem = exc
                continue
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

    deadline: Deadline


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_maker(HTTPConnection, req), req)


class _Secure(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_maker(HTTPSConnection, req), req)


HANDLERS: Final = (_Plain, _Secure)
"""For `build_opener`, in place of its own, which know no deadline."""


def _maker(kind: type[HTTPConnection], request: urllib.request.Request) -> Any:
    def make(host: str, **settings: Any) -> HTTPConnection:
        connection = kind(host, **settings)
        if isinstance(request, BoundedRequest):
            connection._create_connection = request.deadline.connect  # type: ignore[attr-defined]
        return connection

    return make
