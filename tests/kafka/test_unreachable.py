"""Wrong addresses, each with its own error within a second: nothing listens, no such name, not Kafka, TLS."""

from __future__ import annotations

import http.server
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kclient.errors import (
    ConnectError,
    NameResolutionError,
    PeerSpeaksTlsError,
    PortClosedError,
    VersionError,
)
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read
from tests.kafka.other_clients import produce_numbers

TOLD_WITHIN = 1.0


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[str]:
    """Serve on a thread; the address."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        host, port = server.server_address[:2]  # type: ignore[misc]
        yield f"{host!s}:{port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class Quiet(http.server.BaseHTTPRequestHandler):
    """An HTTP server that answers 400 to what is no HTTP, and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server() -> Iterator[str]:
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)) as address:
        yield address


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    """Speaks TLS with a certificate that it signed itself."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-days", "2", "-nodes", "-newkey", "rsa:2048"]
    command = ["openssl", "req", "-x509", *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                with context.wrap_socket(self.request, server_side=True) as tls:
                    tls.recv(1)
            except OSError:  # the handshake fails: an alert was sent
                return

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as address:
        yield address


@contextmanager
def closed_port(_: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host, port = taken.getsockname()
        yield f"{host}:{port}"


@contextmanager
def unknown_name(_: Path) -> Iterator[str]:
    yield "no-such-host.invalid:9092"


@contextmanager
def not_kafka(_: Path) -> Iterator[str]:
    with http_server() as address:
        yield address


CAUSES: list[tuple[Any, type[ConnectError], str]] = [
    (closed_port, PortClosedError, "tcp"),
    (unknown_name, NameResolutionError, "dns"),
    (not_kafka, VersionError, "versions"),
    (tls_server, PeerSpeaksTlsError, "tls"),
]
CALLS: dict[str, Callable[[Any], object]] = {
    "poll": lambda consumer: consumer.poll(10.0),
    "list_topics": lambda consumer: consumer.list_topics(timeout=10.0),
}


@pytest.mark.spec("U-16", "U-17", "I-23", "B.4.4", "B.4.11")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("server", "error", "stage"), CAUSES, ids=[cause[2] for cause in CAUSES])
def test_each_cause_has_its_error_within_a_second(
    consumer_class: Any, tmp_path: Path, server: Any, error: type[ConnectError], stage: str, call: str
) -> None:
    with (
        server(tmp_path) as address,
        consumer_class("t", bootstrap_servers=address, group_id="g") as consumer,
    ):
        began = time.monotonic()
        with pytest.raises(ConnectError) as caught:
            CALLS[call](consumer)
        assert time.monotonic() - began < TOLD_WITHIN
        assert type(caught.value) is error
        host, port = address.rsplit(":", 1)
        assert (caught.value.stage, caught.value.host, caught.value.port) == (stage, host, int(port))
        assert address in str(caught.value)
        began = time.monotonic()
    assert time.monotonic() - began < TOLD_WITHIN  # close() waits for no broker


@pytest.mark.spec("B.4.7", "U-16")
def test_one_address_that_works_is_enough(
    kafka1: KafkaCluster, consumer_class: Any, tmp_path: Path, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    with closed_port(tmp_path) as closed, http_server() as other:
        addresses = f"{closed},no-such-host.invalid:9092,{other},{kafka1.bootstrap_servers}"
        keys = {"bootstrap_servers": addresses, "group_id": fresh_name, "auto_offset_reset": "earliest"}
        with consumer_class(fresh_name, **keys) as consumer:
            assert len(read(consumer, 10)) == 10
