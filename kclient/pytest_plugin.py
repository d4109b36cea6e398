"""pytest fixtures: a Kafka cluster in this process, for each test or the whole run, or in a simulation; no Java.

    def test_orders(kafka):
        kafka.produce("orders", ["one", "two"])
        with Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing", ...) as consumer:
            ...

    @pytest.mark.kafka_cluster(brokers=1, release="2.8", config={"group.max.size": 2}, topics={"orders": 6})
    def test_old(kafka): ...

    def test_nothing_is_lost(kafka_simulation):
        async def scenario(simulation): ...  # see kclient.simulation
        kafka_simulation(scenario, seeds=range(1, 21), topics={"orders": 6})

`--kafka-bootstrap HOST:PORT` runs the same tests against a real cluster; what only the embedded one can do is skipped
there, by name. `--kafka-seed N` repeats a run's random ids, and runs simulations with this seed alone. Nothing but
pytest is imported until a fixture is used.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kclient.embedded import EmbeddedCluster
    from kclient.simulation import SimulationRunner

BROKERS = 3
MARK = "kafka_cluster"
OPTIONS = ("brokers", "release", "config", "topics", "racks")
FIXTURES = frozenset({"kafka", "kafka_cluster"})
SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka")
    group.addoption(
        "--kafka-seed",
        type=int,
        metavar="N",
        help="repeat the random ids of a run of the embedded Kafka cluster, or a run of kafka_simulation "
        "(a failing test names its seed)",
    )
    group.addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT,…",
        help="let the fixtures kafka and kafka_cluster stand for this cluster instead of an embedded one",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARK}(brokers=3, release='4.3', config={{}}, topics={{}}, racks=[]): how the fixture kafka is set up",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seed = item.config.stash.get(SEED, None)
    if report.failed and seed is not None and FIXTURES & set(getattr(item, "fixturenames", ())):
        report.sections.append(("kafka", f"its random ids come again with --kafka-seed={seed}"))
    return report


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """A Kafka cluster of three brokers for one test; `@pytest.mark.kafka_cluster(...)` configures it."""
    mark = request.node.get_closest_marker(MARK)
    if mark is not None and (mark.args or set(mark.kwargs) - set(OPTIONS)):
        raise pytest.UsageError(
            f"{request.node.nodeid}: @pytest.mark.{MARK} takes {', '.join(OPTIONS)} by name"
        )
    with _cluster(request, dict(mark.kwargs) if mark else {}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_cluster_options() -> dict[str, Any]:
    """The options of `kafka_cluster`: override it in your conftest.py with the marker's arguments."""
    return {}


@pytest.fixture(scope="session")
def kafka_cluster(
    request: pytest.FixtureRequest, kafka_cluster_options: dict[str, Any]
) -> Iterator[EmbeddedCluster]:
    """One Kafka cluster for all tests that use this fixture; they share its topics and groups."""
    with _cluster(request, dict(kafka_cluster_options)) as cluster:
        yield cluster


@pytest.fixture
def kafka_simulation(request: pytest.FixtureRequest) -> SimulationRunner:
    """Run scenarios under virtual time and faults, once for each seed; with `--kafka-seed` for that one alone."""
    from kclient.simulation import SimulationRunner

    return SimulationRunner(request.config.getoption("--kafka-seed"))


def _cluster(request: pytest.FixtureRequest, options: dict[str, Any]) -> AbstractContextManager[Any]:
    servers = request.config.getoption("--kafka-bootstrap")
    if servers is not None:  # an empty variable of a CI must not mean the embedded cluster
        return _elsewhere(servers, options)
    return _embedded(request, options)


def _embedded(request: pytest.FixtureRequest, options: dict[str, Any]) -> AbstractContextManager[Any]:
    from kclient.embedded import EmbeddedCluster
    from kclient.runtime import Runtime

    seed = request.config.stash.get(SEED, request.config.getoption("--kafka-seed"))
    if seed is None:
        seed = Runtime().rng.randrange(1 << 32)
    request.config.stash[SEED] = seed
    runtime = Runtime.seeded(f"{seed} {request.node.nodeid}")
    cluster = EmbeddedCluster(**{"brokers": BROKERS, "runtime": runtime, **options})

    @contextmanager
    def started() -> Iterator[Any]:
        with cluster:
            cluster.prepare_groups()
            yield cluster

    return started()


def _elsewhere(servers: str, options: dict[str, Any]) -> AbstractContextManager[Any]:
    from kclient.embedded.remote import RemoteCluster

    class Elsewhere(RemoteCluster):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            pytest.skip(f"kafka.{name} is for the embedded cluster, and --kafka-bootstrap names another")

    @contextmanager
    def started() -> Iterator[Any]:
        with Elsewhere(servers) as cluster:
            if fixed := sorted({"release", "config", "racks"} & set(options)):
                pytest.skip(f"--kafka-bootstrap names a cluster whose {' and '.join(fixed)} cannot be chosen")
            if (wanted := options.get("brokers", 1)) > cluster.brokers:
                pytest.skip(f"--kafka-bootstrap names a cluster of {cluster.brokers} brokers, not {wanted}")
            for topic, partitions in options.get("topics", {}).items():
                cluster.create_topic(topic, partitions)
            yield cluster

    return started()
