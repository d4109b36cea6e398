"""The releases that the tests of this folder run on, one after the other: one broker at a time beside the rest.

A test takes the fixture `broker` and runs on each release of `--releases`; `@pytest.mark.since("0.11.0")` and
`@pytest.mark.until("2.8")` leave out those that do not have what it is about.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from kclient.embedded.releases import Release
from localkafka import KafkaCluster
from localkafka.fetch import chosen
from tests.kafka.fixtures import start

# Cleaning begins at once, the buffers of the cleaner are small, and old records are as welcome as new ones.
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.retention.hours": "-1",
    "log.retention.check.interval.ms": "1000",
    "message.max.bytes": "10000000",
    "replica.fetch.max.bytes": "10000000",
    "fetch.max.bytes": "20000000",
}
NOT_YET = {"0.10.2.2": {"fetch.max.bytes"}}


@attrs.frozen
class Broker:
    """One running node and which release it is."""

    kafka: KafkaCluster
    release: Release

    @property
    def bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers

    def since(self, release: str) -> bool:
        """Whether it is of this release or a newer one."""
        return self.release >= Release.parse(release)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "since(release): the first release that the test speaks of")
    config.addinivalue_line("markers", "until(release): the last one")


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests here need a real broker. The fixture's name cannot show it: other folders also have a `broker`."""
    item.add_marker("kafka")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each release that has what the test is about, oldest first."""
    if "broker" not in metafunc.fixturenames:
        return
    since = metafunc.definition.get_closest_marker("since")
    until = metafunc.definition.get_closest_marker("until")
    versions = [
        version
        for version in sorted(chosen(metafunc.config.getoption("--releases")), key=Release.parse)
        if (since is None or Release.parse(version) >= Release.parse(since.args[0]))
        and (until is None or Release.parse(version) <= Release.parse(until.args[0]))
    ]
    metafunc.parametrize("broker", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running broker of one release; the one before it has ended."""
    version = request.param
    settings = {key: value for key, value in SETTINGS.items() if key not in NOT_YET.get(version, ())}
    for kafka in start(version, 1, settings):
        yield Broker(kafka, Release.parse(version))
