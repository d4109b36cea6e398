"""Nothing is accepted and ignored: whatever key the loader takes, some line of kclient reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kclient
from kclient.config import load, spellings
from kclient.config.model import keys
from kclient.config.refused import REFUSED
from kclient.errors import ConfigError

LIBRARY = Path(kclient.__file__).parent
ELSEWHERE = ("config", "generated")

KAFKAS_OWN = """
bootstrap.servers client.dns.lookup group.id group.instance.id group.protocol group.remote.assignor session.timeout.ms
heartbeat.interval.ms partition.assignment.strategy max.poll.interval.ms max.poll.records enable.auto.commit
auto.commit.interval.ms auto.offset.reset isolation.level fetch.min.bytes fetch.max.bytes max.partition.fetch.bytes
fetch.max.wait.ms check.crcs allow.auto.create.topics exclude.internal.topics client.id client.rack key.deserializer
value.deserializer interceptor.classes metadata.max.age.ms metadata.recovery.strategy
metadata.recovery.rebootstrap.trigger.ms request.timeout.ms default.api.timeout.ms retry.backoff.ms
retry.backoff.max.ms reconnect.backoff.ms reconnect.backoff.max.ms socket.connection.setup.timeout.ms
socket.connection.setup.timeout.max.ms connections.max.idle.ms send.buffer.bytes receive.buffer.bytes
enable.metrics.push metric.reporters metrics.sample.window.ms metrics.num.samples metrics.recording.level
security.protocol security.providers config.providers internal.throw.on.fetch.stable.offset.unsupported
share.acknowledgement.mode share.acquire.mode default.list.key.serde.inner default.list.key.serde.type
default.list.value.serde.inner default.list.value.serde.type
""".split()  # noqa: SIM905 – a table is read more easily so
"""The keys of a Kafka 4.3 consumer, but for those of TLS and SASL."""


def names_read() -> Iterator[str]:
    """Every attribute that any module of kclient outside of the configuration reads."""
    for path in LIBRARY.rglob("*.py"):
        if path.relative_to(LIBRARY).parts[0] not in ELSEWHERE:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    yield node.attr


@pytest.mark.spec("B.1")
def test_every_honoured_key_is_read_by_some_line() -> None:
    honoured = {field.name for field in keys()}
    assert honoured - set(names_read()) == set()


@pytest.mark.spec("B.1")
@pytest.mark.parametrize("key", KAFKAS_OWN)
def test_every_key_of_kafka_is_honoured_or_refused_with_its_reason(key: str) -> None:
    name = spellings.KAFKAS_SPELLINGS.get(key.replace(".", "_"), key.replace(".", "_"))
    if name in {field.name for field in keys()}:
        assert name not in REFUSED
        return
    with pytest.raises(ConfigError) as caught:
        load({"bootstrap_servers": "localhost:9092"}, {key: "something"})
    (problem,) = caught.value.problems
    assert f"{key} (config) is refused: {REFUSED[name].reason}" == problem


@pytest.mark.spec("B.1")
@pytest.mark.parametrize("key", ["metadata.cluster.check.enable", "bootstrap.resolve.timeout.ms"])
def test_keys_of_a_later_kafka_are_unknown(key: str) -> None:
    with pytest.raises(ConfigError, match="is unknown"):
        load({"bootstrap_servers": "localhost:9092"}, {key: "1"})
