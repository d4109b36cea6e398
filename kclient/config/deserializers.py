"""Deserializers: a callable `(topic, headers, data)`, or Java's shape: `configure`, `deserialize`, `close`.

Either becomes one callable, so that nobody further down knows of two shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from kclient.config.plugins import close_quietly


def deserializer(raw: Any) -> Any:
    """Check one deserializer: a callable, an object with `deserialize`, or a class whose objects have it."""
    if isinstance(raw, str):
        raise ValueError(
            "names a Java class; give a callable (topic, headers, data), or nothing to get bytes. "
            "For text: lambda topic, headers, data: data.decode()"
        )
    function = raw.deserialize if hasattr(raw, "deserialize") else raw
    if not callable(function):
        raise ValueError("must be a callable (topic, headers, data) or have a method deserialize")
    if not isinstance(raw, type):
        _check_parameters(function)
    return raw


def _check_parameters(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot take topic, headers and data, such as `json.loads`."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a built-in that does not tell
    try:
        signature.bind("topic", (), b"")
    except TypeError:
        raise ValueError(
            "must take topic, headers and data; wrap it: lambda topic, headers, data: …(data)"
        ) from None


def as_callable(
    raw: Any, settings: Mapping[str, Any], made: ExitStack, *, is_key: bool
) -> Callable[[str, Any, bytes], Any]:
    """Make the callable. An object of Java's shape is configured here, once; `made` closes it if that fails."""
    is_class = isinstance(raw, type) and hasattr(raw, "deserialize")
    if is_class:
        raw = raw()
    if not hasattr(raw, "deserialize"):
        return raw  # type: ignore[no-any-return]
    if is_class or hasattr(raw, "configure"):
        made.callback(close_quietly, raw)
    if hasattr(raw, "configure"):
        raw.configure(settings, is_key)
    return raw.deserialize  # type: ignore[no-any-return]


def close(function: Callable[[str, Any, bytes], Any] | None) -> None:
    """Close a deserializer that has something to close."""
    owner = getattr(function, "__self__", None)
    if function == getattr(owner, "deserialize", None) and callable(getattr(owner, "close", None)):
        owner.close()  # type: ignore[union-attr]
