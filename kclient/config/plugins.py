"""Objects of the user that kclient calls: interceptors and metric reporters.

Each is an object, a class that is made into one without arguments, or the name of such a class as Python imports it
(`package.module.Class`), which is how a properties file can name it. `configure(settings)` is called first where it is
there, with Kafka's dotted keys. If one of them raises, or the consumer cannot be made for another reason, `close()` of
all that were made or configured is called, as Java does.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from os import PathLike, fspath
from typing import Any, Final

import attrs

from kclient.config.values import items
from kclient.log import get_logger
from kclient.types import DeadLetter

log: Final = get_logger("kclient.config")

JAVAS_OWN: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""The default of every Java client, which has no meaning in Python."""


def interceptors(raw: Any) -> tuple[Any, ...]:
    """Check interceptors: objects with `on_consume`, `on_commit` or both."""
    return tuple(_checked(item, "any", ("on_consume", "on_commit")) for item in _listed(raw))


def reporters(raw: Any) -> tuple[Any, ...]:
    """Check metric reporters: objects with `metric_added`, `metric_removed` and `close`."""
    wanted = ("metric_added", "metric_removed", "close")
    return tuple(_checked(item, "all", wanted) for item in _listed(raw) if item != JAVAS_OWN)


def make(chosen: Iterable[Any], settings: Mapping[str, Any], made: ExitStack) -> tuple[Any, ...]:
    """Make the objects: instantiate classes, and configure all. `made` closes them if that fails."""
    plugins = []
    for item in chosen:
        plugin = item() if isinstance(item, type) else item
        configure = getattr(plugin, "configure", None)
        if plugin is not item or callable(configure):
            made.callback(close_quietly, plugin)
        if callable(configure):
            configure(settings)
        plugins.append(plugin)
    return tuple(plugins)


def close_quietly(item: object) -> None:
    """Close an object whose consumer could not be created; log an exception of its `close()`.

    A coroutine function is left alone: no loop runs here.
    """
    close = getattr(item, "close", None)
    if not callable(close) or inspect.iscoroutinefunction(close):
        return
    try:
        close()
    except Exception:
        log.exception("close() of a %s raised after the consumer could not be made", type(item).__name__)


def _listed(raw: Any) -> list[Any]:
    return items(raw if isinstance(raw, str | Iterable) and not isinstance(raw, type) else [raw])


def _checked(item: Any, how_many: str, methods: tuple[str, ...]) -> Any:
    plugin = _named(item) if isinstance(item, str) else item
    found = [callable(getattr(plugin, method, None)) for method in methods]
    if not (all(found) if how_many == "all" else any(found)):
        raise ValueError(f"holds {plugin!r}, which does not have {how_many} of {', '.join(methods)}")
    return plugin


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as exc:
        raise ValueError(
            f"names {path}, which cannot be imported ({exc}); give an object, a class, or package.module.Class"
        ) from None
    if not isinstance(found, type):
        raise ValueError(f"names {path}, which is {found!r} and no class")
    return found


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
        return  # a built-in without a signature
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


def close_deserializer(function: Callable[[str, Any, bytes], Any] | None) -> None:
    """Close a deserializer that has something to close."""
    owner = getattr(function, "__self__", None)
    if function == getattr(owner, "deserialize", None) and callable(getattr(owner, "close", None)):
        owner.close()  # type: ignore[union-attr]


@attrs.frozen
class FileSink:
    """Appends one line of JSON for each record, and flushes it, before the record is skipped.

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
    """Check a dead-letter target: a callable that takes a DeadLetter, or the path of a file."""
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
            "must be a plain function: it runs while records are decoded, and nothing awaits it there"
        )
    return raw


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
