"""Metric names with tags, the function that reads each value, and the reporters that are notified of new metrics.

A name has Java's form: group, name and tags, `client-id` always among them. A value is computed when it is read.
Exceptions of a reporter are logged and otherwise ignored, so that metrics never disturb the consumer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import attrs

from kclient.log import get_logger
from kclient.metrics.sensor import Sensor, Windows

log: Final = get_logger("kclient.metrics")

Read = Callable[[float], float]
"""From the loop's seconds to a value."""


class MetricName(NamedTuple):
    """Identifies a metric: group, name and tags, which are sorted pairs of text."""

    group: str
    name: str
    tags: tuple[tuple[str, str], ...] = ()

    def tag(self, key: str) -> str | None:
        """Return the value of one tag; None if the name does not have it."""
        return dict(self.tags).get(key)


@attrs.frozen(eq=False)
class Metric:
    """A name and its value, which may be read from any thread as long as the process runs."""

    name: MetricName
    _read: Read
    _clock: Callable[[], float]

    def value(self) -> float:
        """Return the value now; NaN if nothing was recorded in the windows."""
        return self._read(self._clock())


class MetricReporter(Protocol):
    """Notified when a metric is added or removed; it may call `metric.value()` at any time.

    The methods run on the loop's thread, so they must not wait. `configure(settings)` is called first, if it is there,
    with Kafka's dotted keys.
    """

    def metric_added(self, metric: Metric) -> None:
        """Handle a new metric."""

    def metric_removed(self, metric: Metric) -> None:
        """Handle a removed metric: its partition was revoked, for example."""

    def close(self) -> None:
        """Handle the consumer's close; its metrics keep their last values."""


class MetricValues(Mapping[MetricName, float]):
    """Every metric with its value at one moment: a mapping, and `value` for a look at a single one."""

    def __init__(self, values: Mapping[MetricName, float]) -> None:
        self._values = values

    def __getitem__(self, name: MetricName) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<MetricValues: {len(self)} metrics>"

    def value(self, name: str, **tags: object) -> float:
        """Return the value of the metric with this name and exactly these tags, besides `client-id`.

            metrics.value("records-lag-max")        metrics.value("records-lag", topic="orders", partition=0)

        An underscore stands for the hyphen in a tag. Raise KeyError if there is no such metric.
        """
        wanted = tag_pairs(tags)
        for found, value in self._values.items():
            if found.name == name and tuple(pair for pair in found.tags if pair[0] != "client-id") == wanted:
                return value
        raise KeyError(" ".join((name, *(f"{key}={value}" for key, value in wanted))))


class LoopClock:
    """The time of the loop that it was first asked on, from any thread; 0 before there is a loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self) -> float:
        if self._loop is None:
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:
                return 0.0
        return self._loop.time()


class Registry:
    """The metrics of one consumer."""

    def __init__(
        self,
        client_id: str = "",
        windows: Windows = Windows(),  # noqa: B008 – frozen
        reporters: Iterable[MetricReporter] = (),
    ) -> None:
        self.clock: Final = LoopClock()
        self._client_id = client_id
        self._windows = windows
        self._reporters = tuple(reporters)
        self._metrics: dict[MetricName, Metric] = {}
        self._unnamed: dict[object, Callable[[], None]] = {}
        self._logged: dict[str, None] = {}

    def sensor(self) -> Sensor:
        """Return a new sensor with this consumer's windows."""
        return Sensor(self._windows)

    def group(self, name: str, **tags: object) -> Group:
        """Return a group of names that share tags."""
        return Group(self, name, tag_pairs({"client_id": self._client_id, **tags}))

    def values(self) -> MetricValues:
        """Return the current value of every metric."""
        unnamed, self._unnamed = self._unnamed, {}
        for add_names in unnamed.values():
            add_names()
        now = self.clock()
        return MetricValues({name: metric._read(now) for name, metric in self._metrics.items()})

    def add(self, name: MetricName, read: Read) -> None:
        """Add a metric and notify the reporters."""
        metric = self._metrics[name] = Metric(name, read, self.clock)
        self._notify_reporters("metric_added", metric)

    def add_later(self, whose: object, add_names: Callable[[], None]) -> None:
        """Add names when the values are next read; at once if there is a reporter. There may be thousands."""
        if self._reporters:
            add_names()
        else:
            self._unnamed[whose] = add_names

    def forget(self, whose: object) -> None:
        """Forget the names that `add_later` would have added."""
        self._unnamed.pop(whose, None)

    def remove(self, name: MetricName) -> None:
        """Remove a metric and notify the reporters."""
        metric = self._metrics.pop(name, None)
        if metric is not None:
            self._notify_reporters("metric_removed", metric)

    def close(self) -> None:
        """Close the reporters."""
        self._notify_reporters("close")

    def _notify_reporters(self, method: str, *arguments: Metric) -> None:
        for reporter in self._reporters:
            try:
                getattr(reporter, method)(*arguments)
            except (Exception, asyncio.CancelledError, SystemExit) as exc:  # noqa: BLE001 – of no other consequence
                self._log_once(f"{type(reporter).__name__}.{method}", exc)

    def _log_once(self, what: str, error: BaseException) -> None:
        """Log only the first failure of a reporter's method: there may be thousands of metrics."""
        if what not in self._logged:
            self._logged[what] = None
            log.error(
                "the metric reporter's %s failed; its further failures are not logged", what, exc_info=error
            )


class Group:
    """Adds names to one group, and takes them away together."""

    def __init__(self, registry: Registry, name: str, tags: tuple[tuple[str, str], ...]) -> None:
        self._registry = registry
        self._name = name
        self._tags = tags
        self._added: list[MetricName] = []

    def add(self, name: str, read: Read) -> None:
        """Add a value that is computed when it is read."""
        full = MetricName(self._name, name, self._tags)
        self._added.append(full)
        self._registry.add(full, read)

    def spread(self, name: str, sensor: Sensor, *kinds: str) -> None:
        """Add `-avg`, `-max` and `-min` of the recorded numbers, as requested."""
        for kind in kinds:
            self.add(f"{name}-{kind}", getattr(sensor, kind))

    def events(self, name: str, sensor: Sensor) -> None:
        """Add `-rate` and `-total` of how often something was recorded."""
        self.add(f"{name}-rate", sensor.event_rate)
        self.add(f"{name}-total", lambda now: float(sensor.events))

    def amounts(self, name: str, sensor: Sensor) -> None:
        """Add `-rate` and `-total` of the sum of the numbers."""
        self.add(f"{name}-rate", sensor.rate)
        self.add(f"{name}-total", lambda now: sensor.total)

    def remove(self) -> None:
        """Remove all metrics of this group."""
        for name in self._added:
            self._registry.remove(name)
        self._added.clear()


def tag_pairs(tags: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return tags in the form that a metric name holds."""
    return tuple(sorted((key.replace("_", "-"), str(value)) for key, value in tags.items()))


def seconds_ago(last: float | None, now: float) -> float:
    """Return whole seconds since a moment of the loop's time, −1 if it has not come yet."""
    return -1.0 if last is None else float(int(now - last))
