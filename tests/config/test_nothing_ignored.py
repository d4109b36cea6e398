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
from tests.vectors.test_java_facts import facts

LIBRARY = Path(kclient.__file__).parent
ELSEWHERE = ("config", "generated")

SETTINGS = {name: default for name, _, default in facts("setting")}
"""The keys of the consumer of Kafka 4.4, each with its default in Java's words."""

DIFFERENT = {
    "auto.offset.reset": "on_no_committed_offset and on_offset_out_of_range say more",
    "client.id": "a name that brokers can show",
    "enable.metrics.push": "there is no client telemetry",
    "metric.reporters": "JmxReporter is of the Java virtual machine",
    "partition.assignment.strategy": "names, not classes",
    "interceptor.classes": "objects, not names",
    "reconnect.backoff.ms": "where it is set and reconnect.backoff.max.ms is not, it is both, as in Java",
    "receive.buffer.bytes": "65536 would switch off the kernel's own sizing",
}
"""Where the default is another one, and why."""


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
@pytest.mark.parametrize("key", SETTINGS)
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
@pytest.mark.parametrize("key", sorted(SETTINGS.keys() - DIFFERENT.keys()))
def test_every_default_is_that_of_kafka(key: str) -> None:
    """A key that is set to Kafka's default changes nothing."""
    if SETTINGS[key] in ("required", "null", "[]", ""):
        return
    text = SETTINGS[key].strip("[]").removeprefix("class ")
    here = {"bootstrap_servers": "localhost:9092", "group_id": "g", "client_id": "c"}
    assert load(here, {key: text}) == load(here, {})
