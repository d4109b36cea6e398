"""Faults by API: how they are called, and the rule that comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

import attrs

from kclient.embedded import apis
from kclient.embedded.faults import Edit
from kclient.errors import ArgumentError
from kclient.generated.error_codes import TABLE
from kclient.protocol.message import Message

CODES: Final[dict[str, int]] = {row[1]: row[0] for row in TABLE}
NOT_ASKED_FOR: Final = frozenset({"brokers", "node_endpoints", "api_keys", "aborted_transactions"})


def api_name(api: str) -> str:
    """The API's name, "*" for all. Raises ArgumentError, which names the nearest."""
    if api == "*" or api in apis.MODULES:
        return api
    raise ArgumentError(
        f"No API is called {api!r}{_near(str(api), apis.MODULES)}; give the request's name, or '*'."
    )


def error_code(error: str | int) -> int:
    """The code of an error of the wire. Raises ArgumentError, which names the nearest."""
    if isinstance(error, int) and -(2**15) <= error < 2**15:
        return error  # also one that no client knows yet
    if error not in CODES:
        raise ArgumentError(
            f"No error is called {error!r}{_near(str(error), CODES)}; give Kafka's name or its code."
        )
    return CODES[error]


def _near(name: str, known: Iterable[str]) -> str:
    spelled = {one.replace("_", "").lower(): one for one in known}
    near = get_close_matches(name.replace("_", "").lower(), spelled, n=1)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def keep_first(count: int) -> Edit:
    """An edit that leaves the first `count` of the partitions, groups or topics in an answer. Raises ArgumentError."""
    if count < 0:
        raise ArgumentError(f"An answer cannot keep {count} of its entries; give 0 or more.")

    def edit(_: Message, answer: Message) -> Message:
        _shorten(answer, count)
        return answer

    return edit


def _shorten(holder: Any, left: int) -> int:
    """Cut the innermost arrays down to `left` entries in all; how many may still come."""
    for name in _arrays(holder):
        entries = getattr(holder, name)
        if any(_arrays(entry) for entry in entries):
            for entry in entries:
                left = _shorten(entry, left)
        else:
            setattr(holder, name, entries[:left])
            left -= min(left, len(entries))
    return left


def _arrays(holder: Any) -> list[str]:
    """The fields with an array of structs, those aside that nobody asks for one by one."""
    return [
        field.name
        for field in attrs.fields(type(holder))
        if isinstance(value := getattr(holder, field.name), list)
        and value
        and attrs.has(type(value[0]))
        and field.name not in NOT_ASKED_FOR
    ]
