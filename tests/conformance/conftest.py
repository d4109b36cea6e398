"""The targets: three real brokers and three embedded ones, each started when the first test asks for it.

A test takes the fixture `target` and runs against each. With `version` as well, and `@pytest.mark.api("Fetch")`, it
runs in every version that the target offers; `@pytest.mark.api("Fetch", 7)` begins at 7, `few=True` takes the first,
the last, and the first flexible one. `@pytest.mark.since("4.0")` leaves out the older targets.

The main judges are Kafka 4.3 and 2.8. Of 4.4 only what 4.3 does not have is asked, tests marked `since("4.4")` and new
versions, unless `--releases` names it: `make test-brokers` asks all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest

from kclient.embedded.releases import Release
from kclient.protocol.registry import MESSAGES
from localkafka import KafkaCluster
from localkafka.fetch import chosen
from tests.conformance.raw_client import RawClient
from tests.conformance.target import SETTINGS, SETTINGS_OF_4, SETTINGS_OF_REAL_ONES, Target, fresh, offered
from tests.kafka.fixtures import start

REAL = {"kafka-4.4.0": "4.4.0", "kafka-4.3.1": "4.3.1", "kafka-2.8.2": "2.8.2"}
EMBEDDED = {"embedded-4.4": "4.4", "embedded-4.3": "4.3", "embedded-2.8": "2.8"}
LATEST = "4.4.0"
MAIN = Release.parse("4.3")
RELEASES = {name: Release.parse(text) for name, text in {**REAL, **EMBEDDED}.items()}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "api(name, oldest=0, few=False): conformance: the API whose versions a test runs in"
    )
    config.addinivalue_line(
        "markers", "since(release): conformance: the first release that the test speaks of"
    )


def asks_latest(config: pytest.Config) -> bool:
    """Whether all is asked of the latest release too."""
    return LATEST in chosen(config.getoption("--releases"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each target, and each version of the marked API where the test takes `version`."""
    if "target" not in metafunc.fixturenames:
        return
    since = metafunc.definition.get_closest_marker("since")
    oldest = Release.parse(since.args[0] if since else "0.10.0")
    names = [name for name, release in RELEASES.items() if release >= oldest]
    brief = not asks_latest(metafunc.config) and oldest < RELEASES[f"kafka-{LATEST}"]
    if brief and "version" not in metafunc.fixturenames:
        names = [name for name in names if RELEASES[name] <= MAIN]
    if "version" not in metafunc.fixturenames:
        metafunc.parametrize("target", [_param(name, name) for name in names], indirect=True)
        return
    mark = metafunc.definition.get_closest_marker("api")
    assert mark is not None, f"{metafunc.definition.nodeid} takes a version, but of no API"
    rows = [
        _param(f"{name}-v{version}", name, version)
        for name in names
        for version in _versions(RELEASES[name], *mark.args, **mark.kwargs)
        if not brief or RELEASES[name] <= MAIN or version not in offered(MAIN, mark.args[0])
    ]
    metafunc.parametrize(("target", "version"), rows, indirect=["target"])


def _versions(release: Release, api: str, oldest: int = 0, few: bool = False) -> list[int]:
    """The versions to run; `few`: the first, the last, and the first whose layout is flexible."""
    versions = [version for version in offered(release, api) if version >= oldest]
    landmarks = {*versions[:1], *versions[-1:], MESSAGES[f"{api}Request"].flexible_since}
    return [version for version in versions if not few or version in landmarks]


def _param(label: str, name: str, *more: int) -> object:
    return pytest.param(name, *more, id=label, marks=[pytest.mark.kafka] if name in REAL else [])


@attrs.define
class Targets:
    """Those that run already."""

    stack: ExitStack
    running: dict[str, Target] = attrs.field(factory=dict)

    def __call__(self, name: str) -> Target:
        if name not in self.running:
            self.running[name] = self._real(REAL[name]) if name in REAL else self._embedded(EMBEDDED[name])
            self.stack.callback(self.running[name].close)
        return self.running[name]

    def _real(self, version: str) -> Target:
        settings = _settings(version) | SETTINGS_OF_REAL_ONES
        texts = {key: str(value).lower() for key, value in settings.items()}
        kafka: KafkaCluster = self._enter(start(version, 1, texts))
        return Target(version, kafka.bootstrap_servers, lambda: kafka.restart(1), embedded=False)

    def _embedded(self, release: str) -> Target:
        from kclient.embedded import EmbeddedCluster

        cluster = self.stack.enter_context(EmbeddedCluster(release=release, config=_settings(release)))
        return Target(release, cluster.bootstrap_servers, lambda: cluster.restart(1), embedded=True)

    def _enter(self, steps: Iterator[KafkaCluster]) -> KafkaCluster:
        kafka = next(steps)
        self.stack.callback(lambda: next(steps, None))
        return kafka


def _settings(release: str) -> dict[str, bool | int]:
    return SETTINGS | (SETTINGS_OF_4 if Release.parse(release) >= Release.parse("4.0") else {})


@pytest.fixture(scope="session")
def _targets() -> Iterator[Callable[[str], Target]]:
    with ExitStack() as stack:
        yield Targets(stack)


@pytest.fixture
def target(request: pytest.FixtureRequest, _targets: Callable[[str], Target]) -> Target:
    """A running broker."""
    return _targets(request.param)


@pytest.fixture
def raw_client(target: Target) -> Iterator[RawClient]:
    """A connection of the test's own."""
    with target.connect() as connection:
        yield connection


@pytest.fixture
def topic(target: Target) -> str:
    """A new topic of one partition."""
    return target.topic()


@pytest.fixture
def group() -> str:
    """The name of a group that does not exist yet."""
    return fresh("group")
