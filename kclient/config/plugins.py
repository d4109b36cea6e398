"""Objects of the user's that kclient tells things: interceptors and metric reporters.

Each is an object, a class that is made into one without arguments, or the name of such a class as Python imports it
(`package.module.Class`), which is how a properties file can name it. `configure(settings)` is called first where it is
there, with Kafka's dotted keys. If one of them raises, or the consumer cannot be made for another reason, `close()` of
all that were made or configured is called, as Java does.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from kclient.config.values import items
from kclient.log import get_logger

log = get_logger("kclient.config")

JAVAS_OWN: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""Every Java client has it by default; it says nothing about what a Python program wants."""


def interceptors(raw: Any) -> tuple[Any, ...]:
    """Interceptors: objects with `on_consume`, `on_commit` or both."""
    return tuple(_checked(item, "any", ("on_consume", "on_commit")) for item in _listed(raw))


def reporters(raw: Any) -> tuple[Any, ...]:
    """Metric reporters: objects with `metric_added`, `metric_removed` and `close`."""
    wanted = ("metric_added", "metric_removed", "close")
    return tuple(_checked(item, "all", wanted) for item in _listed(raw) if item != JAVAS_OWN)


def make(chosen: Iterable[Any], settings: Mapping[str, Any], made: ExitStack) -> tuple[Any, ...]:
    """The objects: classes are made into one each, and all are configured. `made` closes them if that fails."""
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
    """Close an object whose consumer could not be made; what its `close()` raises is logged.

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
            f"names {path}, which is no class of Python's ({exc}); give an object, a class, or package.module.Class"
        ) from None
    if not isinstance(found, type):
        raise ValueError(f"names {path}, which is {found!r} and no class")
    return found
