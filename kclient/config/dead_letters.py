"""`dead_letters`: where records go that cannot be decoded (on_decode_error="dlq"). A function, or a file of JSON lines.

A topic cannot be one: kclient reads, and has nothing to write to Kafka with. A function may hand over to a producer.
"""

from __future__ import annotations

import base64
import inspect
import json
from os import PathLike, fspath
from typing import Any

import attrs

from kclient.types import DeadLetter


@attrs.frozen
class FileSink:
    """Appends one line of JSON for each record, and flushes it, before the record is left out.

    {"topic", "partition", "offset", "timestamp", "key", "value", "headers": [[name, value], …]}; keys, values and
    header values are base64, or null.
    """

    path: str

    def __call__(self, letter: DeadLetter) -> None:
        headers = [[name, _text(value)] for name, value in letter.headers]
        line = attrs.asdict(letter) | {
            "key": _text(letter.key),
            "value": _text(letter.value),
            "headers": headers,
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def dead_letters(raw: Any) -> Any:
    """A callable that takes a DeadLetter, or the path of a file."""
    if isinstance(raw, str | PathLike):
        path = fspath(raw)
        if not isinstance(path, str) or not path.strip():
            raise ValueError("must be a path, or a function that takes a DeadLetter")
        if path.startswith("topic:"):
            raise ValueError(
                "names a topic, and kclient has no producer; give a path, or a function that hands it to one"
            )
        return FileSink(path)
    if not callable(raw) or isinstance(raw, type):
        raise ValueError("must be a path, or a function that takes a DeadLetter")
    if inspect.iscoroutinefunction(raw):
        raise ValueError(
            "must be a plain function: it runs while records are decoded, where nobody awaits it"
        )
    return raw


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
