"""Real Kafka clusters for any test: one of each kind for the whole run, whole again after each test.

Where Java or mvn is missing the tests are skipped with the reason; with CI=true that is a failure instead.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localkafka import KafkaCluster, unavailable

NO_KAFKA = "no Kafka"
CLUSTERS = {"kafka1", "kafka3", "kafka28"}
# Everything is allowed until a test denies it: `other_clients.denied`.
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
IN_EVERY_RUN = "0.10.2.2,2.3.1"  # the oldest formats, and one from the middle that is up soon


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--releases",
        default=IN_EVERY_RUN,
        help=f"the Kafka releases that tests/brokers runs on, or all (default: {IN_EVERY_RUN})",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test `kafka` if it asks for a cluster, also one that names its cluster as a parameter."""
    parameters = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    named = {one for one in parameters if isinstance(one, str)}
    if CLUSTERS & {*getattr(item, "fixturenames", ()), *named}:
        item.add_marker("kafka")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that is hard to overlook when the real broker was not there."""
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    if missing := [reason for reason in reasons if NO_KAFKA in reason]:
        terminalreporter.write_line(
            f"{len(missing)} tests on a real broker did not run: {missing[0]}", yellow=True
        )


def start(version: str, nodes: int, overrides: Mapping[str, str] | None = None) -> Iterator[KafkaCluster]:
    """A running cluster, or a skip that names what is missing."""
    if reason := unavailable(version):
        if os.environ.get("CI") == "true":
            pytest.fail(f"Kafka {version} must run in CI: {reason}", pytrace=False)
        pytest.skip(f"{NO_KAFKA} {version}: {reason}")
    with KafkaCluster(version, nodes, overrides) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _kafka1() -> Iterator[KafkaCluster]:
    yield from start("4.3.1", 1, WITH_ACLS)


@pytest.fixture(scope="session")
def _kafka3() -> Iterator[KafkaCluster]:
    yield from start("4.3.1", 3)


@pytest.fixture(scope="session")
def _kafka28() -> Iterator[KafkaCluster]:
    yield from start("2.8.2", 1)


@pytest.fixture
def kafka1(_kafka1: KafkaCluster) -> Iterator[KafkaCluster]:
    """Apache Kafka 4.3.1, one node."""
    yield _kafka1
    _kafka1.heal()


@pytest.fixture
def kafka3(_kafka3: KafkaCluster) -> Iterator[KafkaCluster]:
    """Apache Kafka 4.3.1, three nodes that a test may kill, pause and restart."""
    yield _kafka3
    _kafka3.heal()


@pytest.fixture
def kafka28(_kafka28: KafkaCluster) -> Iterator[KafkaCluster]:
    """Apache Kafka 2.8.2 with its ZooKeeper, one node."""
    yield _kafka28
    _kafka28.heal()


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> str:
    """A name for a topic or a group that no other test has: the test's own, and six digits."""
    words = re.sub(r"[^a-zA-Z0-9._]+", "-", request.node.name).strip("-")
    return f"{words[:80]}-{secrets.token_hex(3)}"


@pytest.fixture(params=["Consumer", "AsyncConsumer"])
def consumer_class(request: pytest.FixtureRequest) -> Any:
    """Each public class in turn, the async one behind blocking calls."""
    from tests.kafka.blocking_consumers import (
        FACES,  # here, so that no other test needs kclient for these fixtures
    )

    return FACES[request.param]
