"""Objects of the user's that kclient tells things: interceptors and metric reporters.

Each is an object, a class that is made into one without arguments, or the name of such a class as Python imports it
(`package.module.Class`), which is how a properties file can name it. `configure(settings)` is called first where it is
there, with Kafka's dotted keys.

Spec: B.1.1 (interceptor.classes, metric.reporters).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kclient.config.values import items

JAVAS_OWN: Final = "org.apache.kafka.common.metrics.JmxReporter"
"""Every Java client has it by default; it says nothing about what a Python program wants."""


def interceptors(raw: Any) -> tuple[Any, ...]:
    """Interceptors: objects with `on_consume`, `on_commit` or both."""
    return tuple(_checked(item, "any", ("on_consume", "on_commit")) for item in _listed(raw))


def reporters(raw: Any) -> tuple[Any, ...]:
    """Metric reporters: objects with `metric_added`, `metric_removed` and `close`."""
    wanted = ("metric_added", "metric_removed", "close")
    return tuple(_checked(item, "all", wanted) for item in _listed(raw) if item != JAVAS_OWN)


def make(chosen: Iterable[Any], settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """The objects: classes are made into one each, and all are configured."""
    made = tuple(item() if isinstance(item, type) else item for item in chosen)
    for item in made:
        if callable(configure := getattr(item, "configure", None)):
            configure(settings)
    return made


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
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"names {path}, which is no class of Python's ({error}); give an object, a class, or package.module.Class"
        ) from None
    if not isinstance(found, type):
        raise ValueError(f"names {path}, which is {found!r} and no class")
    return found
