"""What an editor shows: a session with the language server of pyright, over its standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = Path(sys.executable).parent / "basedpyright-langserver"


class LanguageServer:
    """The server, with one file open. A position is the place of a `│` in its text."""

    def __init__(self, text: str, folder: Path) -> None:
        before, after = text.split("│")
        self._uri = (folder / "program.py").as_uri()
        self._position = {"line": before.count("\n"), "character": len(before.rsplit("\n", 1)[-1])}
        self._text = before + after
        self._folder = folder
        self._id = 0

    def __enter__(self) -> Self:
        path = os.pathsep.join((str(PROGRAM.parent), os.environ["PATH"]))
        self._process = subprocess.Popen(
            [PROGRAM, "--stdio"],
            cwd=self._folder,
            env=os.environ | {"PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        folders = [{"uri": self._folder.as_uri(), "name": "program"}]
        docs = {"textDocument": {"hover": {"contentFormat": ["plaintext"]}}}
        self._ask("initialize", {"processId": None, "capabilities": docs, "workspaceFolders": folders})
        self._send({"method": "initialized", "params": {}})
        opened = {"uri": self._uri, "languageId": "python", "version": 1, "text": self._text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            self._process.kill()

    def hover(self) -> str:
        """Return what is shown under the pointer."""
        return str(self._at("textDocument/hover")["contents"]["value"])

    def completions(self) -> list[str]:
        """Return what may be written here."""
        return [item["label"] for item in self._at("textDocument/completion")["items"]]

    def _at(self, method: str) -> Any:
        return self._ask(method, {"textDocument": {"uri": self._uri}, "position": self._position})

    def _ask(self, method: str, params: Any) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:  # the server asks for settings: it gets none
                asked = message["params"].get("items", []) if message["params"] else []
                self._send({"id": message["id"], "result": [None] * len(asked)})
            elif message.get("id") == self._id:
                assert "error" not in message, message
                return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found = json.loads(self._process.stdout.read(length))
        assert isinstance(found, dict)
        return found
