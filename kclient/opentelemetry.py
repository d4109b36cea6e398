"""OpenTelemetry: spans of what a consumer receives and the application handles, and metrics. Needs `[otel]`.

    telemetry = ConsumerTelemetry()
    with Consumer("orders", interceptors=[telemetry], metric_reporters=[MetricsReporter()], …) as consumer:
        for record in consumer:
            with telemetry.process(record):
                handle(record)

Names and attributes follow OpenTelemetry's semantic conventions for messaging and for Kafka. A producer that is traced
puts its context into the record's headers, and the spans here continue it:

    poll orders       CLIENT      one for each topic of a poll that returned records, with a link to each context
    process orders    CONSUMER    one for each `process`, a child of the record's context

    messaging.client.consumed.messages    counter, by topic and partition
    messaging.process.duration            histogram in seconds, by topic
    kafka.consumer.…                      every metric of Java's consumer, as gauges and counters: MetricsReporter

The interceptor runs where the application's own code runs, and its errors are logged and change nothing.
"""

from __future__ import annotations

import math
import time  # noqa: TID251 – the duration of the application's work, on a thread where no loop runs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from kclient.errors import ConfigError
from kclient.records.records import Record, Records
from kclient.types import Headers

if TYPE_CHECKING:
    from kclient.metrics.registry import Metric, MetricName

try:
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
    from opentelemetry.propagators.textmap import Getter, TextMapPropagator
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
except ImportError:
    raise ConfigError(
        "kclient.opentelemetry needs opentelemetry-api, which cannot be imported. It is not part of the base install. "
        "Type: pip install 'kclient-kafka[otel]'."
    ) from None

SCOPE: Final = "kclient"
MOST_LINKS: Final = 128
"""Of one span: what OpenTelemetry's SDK keeps by default."""
TOTAL: Final = "-total"
INT_BITS: Final = 64

Attributes = dict[str, str | int | bool]


class _HeaderGetter(Getter[Headers]):
    """Reads a record's headers for a propagator. The last one of a name counts."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        found = [value for name, value in carrier if name == key and value is not None]
        return [found[-1].decode(errors="replace")] if found else None

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


_HEADERS: Final = _HeaderGetter()


class ConsumerTelemetry:
    """An interceptor for one consumer that makes spans and counts records; `process` makes the span of one record.

    Without providers and a propagator it uses the global ones, which the application has set up.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._extract = propagate.extract if propagator is None else propagator.extract
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Records that polls have returned."
        )
        self._duration = meter.create_histogram(
            "messaging.process.duration", "s", "How long the application took for a record."
        )
        self._of_client: Attributes = {"messaging.system": "kafka"}

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take the names of group and client. kclient calls it when the consumer is made."""
        self._of_client["messaging.client.id"] = settings["client.id"]
        if settings["group.id"] is not None:
            self._of_client["messaging.consumer.group.name"] = settings["group.id"]

    def on_consume(self, records: Records[Any, Any]) -> None:
        """Make a span for each topic, and count the records of each partition. kclient calls it in each poll."""
        for topic in dict.fromkeys(tp.topic for tp in records.partitions()):
            mine = [tp for tp in records.partitions() if tp.topic == topic]
            counts = {tp.partition: len(records.of(tp)) for tp in mine}
            self._received(topic, counts, (record for tp in mine for record in records.of(tp)))

    def _received(self, topic: str, counts: Mapping[int, int], records: Iterable[Record[Any, Any]]) -> None:
        common = self._attributes("poll", "receive", topic)
        for partition, count in counts.items():
            where: Attributes = {"messaging.destination.partition.id": str(partition)}
            self._consumed.add(count, _of_metrics(common) | where)
        about = common | {"messaging.batch.message_count": sum(counts.values())}
        if len(counts) == 1:
            about |= {"messaging.destination.partition.id": str(*counts)}
        span = self._tracer.start_span(
            f"poll {topic}", kind=SpanKind.CLIENT, attributes=about, links=self._links(records)
        )
        span.end()

    def _links(self, records: Iterable[Record[Any, Any]]) -> Sequence[Link]:
        """Return a link to the context of each record that has one, to the first of them."""
        links: list[Link] = []
        for record in records:
            if not record.headers:
                continue
            found = trace.get_current_span(self._extract(record.headers, context.Context(), _HEADERS))
            if found.get_span_context().is_valid:
                links.append(Link(found.get_span_context(), _of_record(record)))
            if len(links) == MOST_LINKS:
                break
        return links

    @contextmanager
    def process(self, record: Record[Any, Any]) -> Iterator[Span]:
        """Make the span of the application's work on a record the current one; an exception marks it as failed.

        It is a child of the context in the record's headers, and begins a trace where there is none. Baggage of that
        context is current too.
        """
        common = self._attributes("process", "process", record.topic)
        parent = self._extract(record.headers, context.Context(), _HEADERS)
        began = time.perf_counter()
        outcome: Attributes = {}
        token = context.attach(parent)
        try:
            with self._tracer.start_as_current_span(
                f"process {record.topic}",
                kind=SpanKind.CONSUMER,
                attributes=common | _of_record(record),
                set_status_on_exception=False,
            ) as span:
                try:
                    yield span
                except BaseException as exc:
                    outcome = {"error.type": type(exc).__qualname__}
                    span.set_attributes(outcome)
                    span.set_status(Status(StatusCode.ERROR, type(exc).__qualname__))
                    raise
        finally:
            context.detach(token)
            self._duration.record(time.perf_counter() - began, _of_metrics(common) | outcome)

    def _attributes(self, name: str, kind: str, topic: str) -> Attributes:
        return self._of_client | {
            "messaging.operation.name": name,
            "messaging.operation.type": kind,
            "messaging.destination.name": topic,
        }


def _of_record(record: Record[Any, Any]) -> Attributes:
    """Return what the conventions for Kafka say of one record.

    A key that is no text, no UTF-8, or an integer of more than 64 bits is left out.
    """
    found: Attributes = {
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
    if (key := _text_of(record.key)) is not None:
        found["messaging.kafka.message.key"] = key
    if record.serialized_value_size < 0:
        found["messaging.kafka.message.tombstone"] = True
    else:
        found["messaging.message.body.size"] = record.serialized_value_size
    return found


def _text_of(key: object) -> str | None:
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(key, int):  # str() refuses one of thousands of digits, which a producer can send
        return str(key) if key.bit_length() <= INT_BITS else None
    return key if isinstance(key, str) else None


def _of_metrics(attributes: Attributes) -> Attributes:
    """Leave out what metrics do not have: the client's id changes with each start."""
    return {name: value for name, value in attributes.items() if name != "messaging.client.id"}


# --- the metrics of Java's consumer ----------------------------------------------------------------------------------


class MetricsReporter:
    """A metric reporter that shows each metric of a consumer as an instrument of OpenTelemetry, under Java's name.

    `records-lag-max` is the gauge `kafka.consumer.records_lag_max`, as OpenTelemetry's instrumentation of Java's client
    names it; a name that ends with -total is a counter; tags are attributes. A value is read when metrics are
    collected, and one that is not known (NaN) is left out.
    """

    def __init__(self, *, meter_provider: MeterProvider | None = None) -> None:
        provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
        if provider not in _instruments:
            _instruments[provider] = _Instruments(provider.get_meter(SCOPE))
        self._instruments = _instruments[provider]
        self._mine: set[MetricName] = set()

    def metric_added(self, metric: Metric) -> None:
        """Show a metric. kclient calls it."""
        self._mine.add(metric.name)
        self._instruments.add(metric)

    def metric_removed(self, metric: Metric) -> None:
        """Take a metric away: its partition was revoked, for example. kclient calls it."""
        self._mine.discard(metric.name)
        self._instruments.remove(metric.name)

    def close(self) -> None:
        """Take all metrics of the consumer away. kclient calls it when the consumer is closed."""
        for name in self._mine:
            self._instruments.remove(name)
        self._mine.clear()


class _Instruments:
    """The instruments of one provider, each for the metrics of all consumers with one name: it is registered once."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._shown: dict[str, dict[MetricName, Metric]] = {}

    def add(self, metric: Metric) -> None:
        name = metric.name.name
        if name not in self._shown:
            self._shown[name] = {}
            self._make(name)
        self._shown[name][metric.name] = metric

    def remove(self, name: MetricName) -> None:
        self._shown.get(name.name, {}).pop(name, None)

    def _make(self, name: str) -> None:
        full = f"kafka.consumer.{name.replace('-', '_')}"
        make: Callable[..., object] = (
            self._meter.create_observable_counter
            if name.endswith(TOTAL)
            else self._meter.create_observable_gauge
        )
        make(full, callbacks=[lambda options: self._observe(name, options)])

    def _observe(self, name: str, _options: CallbackOptions) -> Iterator[Observation]:
        for metric in list(self._shown[name].values()):
            value = metric.value()
            if not math.isnan(value):
                yield Observation(value, dict(metric.name.tags))


_instruments: Final[WeakKeyDictionary[MeterProvider, _Instruments]] = WeakKeyDictionary()
