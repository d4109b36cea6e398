"""A schema registry on loopback: what serializers register is what readers get. It notes what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class RegistryServer:
    """`schemas` by id and `subjects` by name, each subject the ids of its versions."""

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.lost_bytes = 0  # of each answer, whose connection ends early
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, subject: str, schema: Any, kind: str = "AVRO") -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        known = [number for number, other in self.schemas.items() if other == text]
        number = known[0] if known else len(self.schemas) + 1
        self.schemas[number] = text
        self.kinds[number] = kind
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        path = path.partition("?")[0]
        if path in self.answers:
            return self.answers[path]
        match path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                found = {
                    "schema": self.schemas[int(number)],
                    "schemaType": self.kinds.get(int(number), "AVRO"),
                }
                return 200, json.dumps(found).encode()
            case ["subjects", subject] if body:  # which version of it is this schema?
                known = {"subject": subject, "id": self._add(subject, body), "version": 1}
                return 200, json.dumps(known | {"schema": json.loads(body)["schema"]}).encode()
            case ["subjects", subject, "versions"] if body:
                return 200, json.dumps({"id": self._add(subject, body)}).encode()
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                ids = self.subjects[subject]
                number = ids[-1] if version == "latest" else ids[int(version) - 1]
                return 200, json.dumps(
                    {"subject": subject, "id": number, "schema": self.schemas[number]}
                ).encode()
        return 404, b'{"error_code": 40403, "message": "not found"}'

    def _add(self, subject: str, body: bytes) -> int:
        wanted = json.loads(body)
        return self.add(subject, wanted["schema"], wanted.get("schemaType", "AVRO"))


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """The server for as long as it is needed."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append((self.path, self.headers.get("Authorization")))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, answer = registry.answer(self.path, body)
            self.send_response(code)
            if 300 <= code < 400:
                self.send_header("Location", f"{registry.url}/elsewhere")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer[: len(answer) - registry.lost_bytes])

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.port = server.server_port
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join(10)
