"""Run the tests on several workers (`pytest -n 2`): which tests stay on one worker, and which run alone.

| test | runs on |
|---|---|
| takes a real cluster, by a fixture or its name as parameter | its worker: each cluster starts once |
| takes the Spark session | its worker; the worker of the cluster that it takes too, which then has a session as well |
| takes a release of Kafka as parameter (`target`, `broker`) | the worker of that release |
| marked `spread` | any worker, each test of the file on its own |
| marked `exclusive` | the last group; no other worker runs a test meanwhile |
| any other | the worker of its file, so that a fixture of the module is made once |

The groups that take longest begin first, so that all workers end at about the same time. A cluster ends in the teardown
of the last test of its group: three idle brokers take an eighth of a core. Without pytest-xdist, or without `-n`, the
tests run one after the other in the order of collection, and nothing here applies.

Only a worker knows the fixtures of a test, and only the controller distributes the tests: the workers write the group
of each test into a file that the controller reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

# In this order: a test that takes two of them runs where the first one is.
GROUP_OF_FIXTURE: Final = {
    "_kafka3": "kafka3",
    "_kafka1": "kafka1",
    "_kafka28": "kafka28",
    "secure_kafka": "secure-kafka",
    "oauth_kafka": "oauth-kafka",
    "spark": "spark",
}
ENDED_WITH_GROUP: Final = {*GROUP_OF_FIXTURE, "_targets", "broker"}
GROUP_OF_PARAMETER: Final = {"tests/conformance": "target", "tests/brokers": "broker"}
LONGEST_FIRST: Final = (
    "kafka1",
    "kafka3",
    "spark",
    "tests/spark/jobs/",
    "kafka28",
    "tests/spark/",
    "conformance-",
    "tests/demo/",
    "tests/simulation/",
    "tests/hostile/",
)  # groups, or what their names begin with; those that wait on brokers between those that compute
EXCLUSIVE: Final = "exclusive"

DIRECTORY: Final = "parallel_directory"
GROUPS: Final = "groups.json"
LOCK = pytest.StashKey["TestLock"]()
OWN_DIRECTORY = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
RUNNING = pytest.StashKey[list[tuple[pytest.FixtureDef[Any], pytest.FixtureRequest]]]()


def group_of(item: pytest.Item) -> str:
    """Return the name of the group of tests that one worker runs; a test that any worker may run is its own group."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    values = {value for value in parameters.values() if isinstance(value, str)}
    named = values.difference({"spark"}).union(
        f"_{value}" for value in values
    )  # "spark" is a writer of a job
    fixtures = named.union(getattr(item, "fixturenames", ()))
    for fixture, group in GROUP_OF_FIXTURE.items():
        if fixture in fixtures:
            return group
    for folder, parameter in GROUP_OF_PARAMETER.items():
        if item.nodeid.startswith(f"{folder}/") and parameter in parameters:
            return f"{folder.rpartition('/')[2]}-{parameters[parameter]}"
    if is_exclusive(item):
        return EXCLUSIVE
    return item.nodeid if item.get_closest_marker("spread") else item.nodeid.partition("::")[0]


def is_exclusive(item: pytest.Item) -> bool:
    """Return whether no other worker may run a test meanwhile."""
    return item.get_closest_marker(EXCLUSIVE) is not None


def rank(group: str) -> int:
    """Return the place of a group in the queue of the run."""
    for place, start in enumerate(LONGEST_FIRST):
        if group.startswith(start):
            return place
    return len(LONGEST_FIRST) + (group == EXCLUSIVE)


def write_groups(directory: Path, worker: str, items: list[pytest.Item]) -> None:
    """Write node id → group of all tests. Every worker writes the same."""
    groups = {item.nodeid: group_of(item) for item in items}
    own = directory / f"groups-{worker}.json"
    own.write_text(json.dumps(groups), encoding="utf-8")
    own.replace(directory / GROUPS)


def read_groups(directory: Path) -> dict[str, str]:
    """Return node id → group of all tests."""
    groups: dict[str, str] = json.loads((directory / GROUPS).read_text(encoding="utf-8"))
    return groups


class TestLock:
    """Two file locks: any number of workers run a test each, or one runs an exclusive test.

    A worker passes the gate first. An exclusive test holds the gate while it waits for the tests that run already, so
    that no new one begins: without the gate, the other workers could keep the room occupied forever.
    """

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self._gate = os.open(directory / "gate", os.O_CREAT | os.O_RDWR)
        self._room = os.open(directory / "room", os.O_CREAT | os.O_RDWR)

    @contextmanager
    def held(self, *, exclusive: bool) -> Iterator[None]:
        """Hold the lock for one test."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files."""
        os.close(self._gate)
        os.close(self._room)


def pytest_configure(config: pytest.Config) -> None:
    if directory := getattr(config, "workerinput", {}).get(DIRECTORY):
        config.stash[LOCK] = lock = TestLock(Path(directory))
        config.add_cleanup(lock.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder of the locks to a worker of pytest-xdist."""
    if OWN_DIRECTORY not in node.config.stash:
        node.config.stash[OWN_DIRECTORY] = own = tempfile.TemporaryDirectory(prefix="kclient-tests-")
        node.config.add_cleanup(own.cleanup)
    node.workerinput[DIRECTORY] = node.config.stash[OWN_DIRECTORY].name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler that gives each group to one worker, in the order of collection."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def schedule(self) -> None:
            self._groups = read_groups(Path(config.stash[OWN_DIRECTORY].name))
            super().schedule()

        def _split_scope(self, nodeid: str) -> str:
            return self._groups[nodeid]

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the groups in order, and exclusive tests last in theirs, when others run short tests; in a worker alone."""
    if hasattr(config, "workerinput"):
        places = {item: (rank(group_of(item)), is_exclusive(item)) for item in items}
        items.sort(key=places.__getitem__)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the groups to a file before pytest-xdist notifies the controller that the tests are collected."""
    if worker := getattr(session.config, "workerinput", None):
        write_groups(Path(worker[DIRECTORY]), worker["workerid"], session.items)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Remember what ends with its group."""
    result = yield
    if fixturedef.scope == "session" and fixturedef.argname in ENDED_WITH_GROUP:
        request.config.stash.setdefault(RUNNING, []).append((fixturedef, request))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the lock around each test, outside of its timeout."""
    lock = item.config.stash.get(LOCK, None)
    if lock is None:
        return (yield)
    with lock.held(exclusive=is_exclusive(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """End the clusters and the Spark session with the last test of their group.

    In its teardown, pytest reports what raises as an error of the test, and the lock and the timeout of the test hold.
    """
    try:
        return (yield)
    finally:
        if LOCK in item.config.stash and nextitem is not None and group_of(nextitem) != group_of(item):
            end_fixtures(item.config)


def end_fixtures(config: pytest.Config) -> None:
    """End what runs, whatever another one raises; a test that asks for a cluster later gets a new one."""
    running, errors = config.stash.get(RUNNING, []), []
    while running:
        fixture, request = running.pop()
        try:
            fixture.finish(request)
        except Exception as error:  # noqa: BLE001 – raised below
            errors.append(error)
    if errors:
        raise ExceptionGroup("errors while the clusters of a group end", errors)
