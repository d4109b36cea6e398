"""Spans and metrics of OpenTelemetry, collected by its SDK; names are compared with its semantic conventions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

from kclient import AsyncConsumer, Consumer
from kclient.embedded import EmbeddedCluster
from kclient.opentelemetry import ConsumerTelemetry, MetricsReporter
from kclient.records.writer import NewRecord
from kclient.types import Headers

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TRACEPARENT = ("traceparent", f"00-{TRACE:032x}-{PARENT:016x}-01".encode())
KNOWN = {
    *(value for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")),
    error_attributes.ERROR_TYPE,
}


class Collected:
    """What the application's own set-up of OpenTelemetry would export."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    def telemetry(self) -> ConsumerTelemetry:
        return ConsumerTelemetry(tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def points(self, name: str) -> dict[tuple[tuple[str, Any], ...], Any]:
        """The data points of an instrument by their attributes."""
        data = self.reader.get_metrics_data()
        scopes = [
            scope for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics
        ]
        found = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        return {
            tuple(sorted((point.attributes or {}).items())): point
            for metric in found
            for point in metric.data.data_points
        }


@pytest.fixture
def collected() -> Collected:
    return Collected()


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 2}) as cluster:
        yield cluster


def settings(cluster: EmbeddedCluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "group_id": "billing",
        "client_id": "c1",
        "auto_offset_reset": "earliest",
    }


def produce(cluster: EmbeddedCluster) -> None:
    traced = (TRACEPARENT, ("baggage", b"tenant=blue"))
    cluster.produce("orders", [new(b"alice", b"apple", traced), ("bob", "pear")], partition=0)


def new(key: bytes | None, value: bytes, headers: Headers) -> NewRecord:
    return NewRecord(key=key, value=value, timestamp=1_760_000_000_000, headers=headers)


def test_a_poll_makes_a_span_with_links_to_the_producers(
    cluster: EmbeddedCluster, collected: Collected
) -> None:
    produce(cluster)
    with Consumer("orders", interceptors=[collected.telemetry()], **settings(cluster)) as consumer:
        assert len(consumer.poll(timeout=5.0)) == 2
    (span,) = collected.spans("poll orders")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 2,
        "messaging.consumer.group.name": "billing",
        "messaging.client.id": "c1",
    }
    (link,) = span.links
    assert (link.context.trace_id, link.context.span_id) == (TRACE, PARENT)
    assert (link.attributes or {})["messaging.kafka.offset"] == 0


def test_the_span_of_a_record_continues_the_context_of_its_headers(
    cluster: EmbeddedCluster, collected: Collected
) -> None:
    produce(cluster)
    telemetry = collected.telemetry()
    tenants = []
    with Consumer("orders", interceptors=[telemetry], **settings(cluster)) as consumer:
        for record in consumer:
            with telemetry.process(record) as span:
                assert trace.get_current_span() is span
                tenants.append(baggage.get_baggage("tenant"))
            if record.offset == 1:
                break
    assert tenants == ["blue", None]
    assert baggage.get_baggage("tenant") is None
    first, second = collected.spans("process orders")
    assert first.kind is SpanKind.CONSUMER
    assert first.parent is not None
    assert (first.parent.trace_id, first.parent.span_id, first.parent.is_remote) == (TRACE, PARENT, True)
    assert second.parent is None
    attributes = dict(first.attributes or {})
    assert (
        attributes
        | {
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.partition.id": "0",
            "messaging.kafka.offset": 0,
            "messaging.kafka.message.key": "alice",
            "messaging.message.body.size": 5,
        }
        == attributes
    )
    every = {name for span in collected.exporter.get_finished_spans() for name in span.attributes or {}}
    assert every - KNOWN == set(), "the semantic conventions do not know it"


def test_an_exception_marks_the_span_and_the_duration(cluster: EmbeddedCluster, collected: Collected) -> None:
    produce(cluster)
    telemetry = collected.telemetry()
    with Consumer("orders", interceptors=[telemetry], **settings(cluster)) as consumer:
        for record in consumer.poll(timeout=5.0):
            if record.offset == 0:
                with pytest.raises(ValueError, match="no such fruit"), telemetry.process(record):
                    raise ValueError("no such fruit")
            else:
                with telemetry.process(record):
                    pass
    failed, good = collected.spans("process orders")
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "ValueError"
    assert [event.name for event in failed.events] == ["exception"]
    assert good.status.status_code is StatusCode.UNSET
    points = collected.points(messaging_metrics.MESSAGING_PROCESS_DURATION)
    assert {dict(found).get("error.type"): point.count for found, point in points.items()} == {
        "ValueError": 1,
        None: 1,
    }


def test_a_tombstone_and_a_key_that_is_no_text(cluster: EmbeddedCluster, collected: Collected) -> None:
    cluster.produce("orders", [(b"\xff", None)], partition=1)
    telemetry = collected.telemetry()
    with Consumer("orders", interceptors=[telemetry], **settings(cluster)) as consumer:
        (record,) = consumer.poll(timeout=5.0)
        with telemetry.process(record):
            pass
    attributes = collected.spans("process orders")[0].attributes or {}
    assert attributes["messaging.kafka.message.tombstone"] is True
    assert "messaging.kafka.message.key" not in attributes
    assert "messaging.message.body.size" not in attributes


def test_a_key_of_thousands_of_digits_is_left_out(cluster: EmbeddedCluster, collected: Collected) -> None:
    """str() refuses such an int: that must not end the application's work on the record."""
    cluster.produce("orders", [(b"\x01" * 2_000, b"apple")], partition=0)
    telemetry = collected.telemetry()

    def number(topic: str, headers: Headers, data: bytes) -> int:
        return int.from_bytes(data, "big")

    options = {"interceptors": [telemetry], "key_deserializer": number, **settings(cluster)}
    with Consumer("orders", **options) as consumer:
        (record,) = consumer.poll(timeout=5.0)
        with telemetry.process(record):
            pass
    assert len(collected.spans("poll orders")) == 1
    assert "messaging.kafka.message.key" not in (collected.spans("process orders")[0].attributes or {})


NO_CONTEXT = {
    "empty": b"",
    "text": b"nonsense",
    "no text": b"\xff" * 60,
    "zeros": b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01",
    "null": None,
}


@pytest.mark.parametrize("header", NO_CONTEXT.values(), ids=NO_CONTEXT)
def test_headers_that_are_no_context_begin_a_trace(
    header: bytes | None, cluster: EmbeddedCluster, collected: Collected
) -> None:
    cluster.produce("orders", [new(None, b"apple", (("traceparent", header),))], partition=0)
    telemetry = collected.telemetry()
    with Consumer("orders", interceptors=[telemetry], **settings(cluster)) as consumer:
        (record,) = consumer.poll(timeout=5.0)
        with telemetry.process(record):
            pass
    assert collected.spans("process orders")[0].parent is None
    assert collected.spans("poll orders")[0].links == ()


def test_with_asyncio_tasks_have_their_own_spans(cluster: EmbeddedCluster, collected: Collected) -> None:
    produce(cluster)

    async def scenario() -> None:
        telemetry = collected.telemetry()

        async def handle(record: Any) -> None:
            with telemetry.process(record) as span:
                await asyncio.sleep(0)
                assert trace.get_current_span() is span

        async with AsyncConsumer("orders", interceptors=[telemetry], **settings(cluster)) as consumer:
            await asyncio.gather(*map(handle, await consumer.poll(timeout=5.0)))

    asyncio.run(scenario())
    assert len(collected.spans("process orders")) == 2


def test_records_are_counted_by_topic_and_partition(cluster: EmbeddedCluster, collected: Collected) -> None:
    produce(cluster)
    cluster.produce("orders", ["plum"], partition=1)
    found = 0
    with Consumer("orders", interceptors=[collected.telemetry()], **settings(cluster)) as consumer:
        while found < 3:
            found += len(consumer.poll(timeout=5.0))
    points = collected.points(messaging_metrics.MESSAGING_CLIENT_CONSUMED_MESSAGES)
    counted = {
        dict(name)["messaging.destination.partition.id"]: point.value for name, point in points.items()
    }
    assert counted == {"0": 2, "1": 1}
    assert {name for attributes in points for name, _ in attributes} - KNOWN == set()


def test_the_reporter_shows_javas_metrics_of_two_consumers_and_takes_them_away(
    cluster: EmbeddedCluster, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    produce(cluster)
    total, lag = "kafka.consumer.records_consumed_total", "kafka.consumer.records_lag"
    given = settings(cluster)

    def reporter() -> MetricsReporter:
        return MetricsReporter(meter_provider=collected.meters)

    with Consumer("orders", metric_reporters=[reporter()], **given) as first:
        assert len(first.poll(timeout=5.0)) == 2
        with Consumer(metric_reporters=[reporter()], **given | {"client_id": "c2", "group_id": None}):
            points = collected.points(total)
            assert points[("client-id", "c1"),].value == 2
            assert {dict(found)["client-id"] for found in points} == {"c1", "c2"}
        assert {dict(found)["client-id"] for found in collected.points(total)} == {"c1"}
        place = (("client-id", "c1"), ("partition", "0"), ("topic", "orders"))
        assert collected.points(lag)[place].value == 0
        first.unsubscribe()
        assert place not in collected.points(lag)
    assert collected.points(total) == {}
    assert "already" not in caplog.text  # no instrument is made twice
    assert "non-finite" not in caplog.text  # nor NaN observed, of which a consumer has many


def test_without_the_library_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import kclient.opentelemetry"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'kclient-kafka[otel]'" in run.stderr
