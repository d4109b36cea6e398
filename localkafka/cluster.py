"""A cluster of one or more brokers that a test starts, kills, pauses and stops.

A cluster is ready when every node lists all nodes, every replica is in sync, and every partition of
`__consumer_offsets` has a coordinator that has loaded it; an open port alone proves nothing. All waits have a
deadline and end with the log of what failed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from localkafka import command_line, probe, settings
from localkafka.errors import LocalKafkaError
from localkafka.jars import QUICK_START, unavailable
from localkafka.launcher import Launcher
from localkafka.processes import Child, Processes
from localkafka.releases import RELEASES
from localkafka.settings import HOST

FAST_START = (*QUICK_START, "-Xmx512m")
READY_SECONDS = 90
ANSWER_SECONDS = 10
POLL_SECONDS = 0.05


class KafkaCluster:
    """Apache Kafka `version` on loopback with nodes 1…`nodes`; `overrides` go into every server.properties.

    `jvm_options` default to a quick start; a benchmark wants `("-Xmx1g",)`, the whole compiler. `listeners` are those
    that clients get beside the plain one, name → security protocol; `format_options` go to StorageTool (KRaft).
    """

    def __init__(
        self,
        version: str = "4.3.1",
        nodes: int = 1,
        overrides: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = FAST_START,
        listeners: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self.version = version
        self._release = RELEASES[version]
        self._overrides = dict(overrides or {})
        self._jvm_options = tuple(jvm_options)
        self._listeners = dict(listeners or {})
        self._format_options = tuple(format_options)
        self._nodes = range(1, nodes + 1)
        self._brokers: dict[int, Child] = {}
        self._paused: set[int] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if reason := unavailable(self.version):
            raise LocalKafkaError(f"Kafka {self.version} cannot be started: {reason}")
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="localkafka-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._processes = stack.enter_context(Processes(folder))
            self._launcher = Launcher(
                self._release,
                folder,
                self._processes,
                self._nodes,
                self._overrides,
                self._jvm_options,
                self._listeners,
                self._format_options,
            )
            self._launcher.prepare()
            self._brokers = {node: self._launcher.start_broker(node) for node in self._nodes}
            self.wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- what a test asks ---------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node, including those that are down."""
        return self._addresses(self._nodes)

    def address(self, node: int, listener: str | None = None) -> tuple[str, int]:
        """Return host and port of one node, of the plain listener or another one."""
        ports = self._launcher.ports[node]
        return HOST, ports.clients if listener is None else ports.listeners[listener]

    def leader_of(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition; wait while there is none."""
        return self._answer(
            f"a leader of {topic}-{partition}",
            lambda broker: self._running_node(
                probe.metadata(broker, ANSWER_SECONDS).leaders.get((topic, partition))
            ),
        )

    def coordinator_of(self, group: str) -> int:
        """Return the node that coordinates a group; wait while there is none."""
        return self._answer(
            f"a coordinator of {group!r}",
            lambda broker: self._running_node(probe.find_coordinator(broker, group, ANSWER_SECONDS)),
        )

    def describe_group(self, group: str) -> dict[tuple[str, int], command_line.CommittedOffset]:
        """Return the output of kafka-consumer-groups: committed offset, end and lag by (topic, partition)."""
        return command_line.describe_group(self._addresses(self._up()), group)

    def create_topic(
        self, topic: str, partitions: int = 1, replication: int | None = None, **configs: str | int
    ) -> None:
        """Create a topic (`retention_ms=-1` stands for `retention.ms`) and wait until every node knows its leaders."""
        replicas = min(3, len(self._nodes)) if replication is None else replication
        texts = {key.replace("_", "."): str(value) for key, value in configs.items()}
        request = (topic, partitions, replicas, texts, ANSWER_SECONDS, self._release.create_topics_version)
        error, text = probe.create_topic(self.address(self._up()[0]), *request)
        if error != probe.NO_ERROR:
            raise LocalKafkaError(f"topic {topic!r} could not be made: error {error} {text}")
        keys = {(topic, partition) for partition in range(partitions)}
        self._wait(f"topic {topic!r}", lambda: all(self._knows(node, keys, replicas) for node in self._up()))

    # --- what a test does to it ---------------------------------------------------------------------------------------

    def kill(self, node: int) -> None:
        """SIGKILL one broker."""
        self._processes.kill(self._brokers[node])
        self._paused.discard(node)

    def pause(self, node: int) -> None:
        """SIGSTOP one broker: its connections stay open and it sends no responses."""
        self._brokers[node].pause()
        self._paused.add(node)

    def resume(self, node: int) -> None:
        """SIGCONT a paused broker."""
        self._brokers[node].resume()
        self._paused.discard(node)

    def restart(self, node: int) -> None:
        """Start a broker again on its old ports and data (killed first if it runs), and wait until all is ready."""
        self.kill(node)
        if not self._release.kraft:
            # Its old registration has to expire.
            time.sleep(settings.zookeeper_session_ms(len(self._nodes)) / 1000 + 1)
        self._brokers[node] = self._launcher.start_broker(node)
        self.wait_until_ready()

    def heal(self) -> None:
        """Undo every kill and pause, so that all nodes run for the next test."""
        for node in sorted(self._paused):
            self.resume(node)
        for node in self._nodes:
            if not self._brokers[node].running:
                self.restart(node)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the running nodes know each other, all replicas are in sync and every group has a coordinator."""
        self._wait(f"Kafka {self.version}", self._ready, READY_SECONDS)

    def segments(self, node: int, topic: str, partition: int) -> list[Path]:
        """Return the log segments of a partition on one node, the oldest first."""
        return sorted(self._launcher.data(node).glob(f"{topic}-{partition}/*.log"))

    def log_tail(self, node: int, size: int = 3000) -> str:
        """Return the last characters of a broker's log."""
        return self._brokers[node].log_tail(size)

    # --- asking -------------------------------------------------------------------------------------------------------

    def _addresses(self, nodes: Iterable[int]) -> str:
        return ",".join(f"{host}:{port}" for host, port in map(self.address, nodes))

    def _up(self) -> list[int]:
        return [node for node in self._nodes if self._brokers[node].running and node not in self._paused]

    def _running_node(self, node: int | None) -> int | None:
        return node if node in self._up() else None

    def _ready(self) -> bool:
        return all(map(self._settled, self._up())) and all(
            self._coordinated(group) for group in self._group_of_each_partition()
        )

    def _settled(self, node: int) -> bool:
        """Return whether a node lists exactly the running nodes, and their replicas are in sync."""
        up = frozenset(self._up())
        known = probe.metadata(self.address(node), ANSWER_SECONDS)
        caught_up = all(replicas & up <= known.in_sync[key] for key, replicas in known.replicas.items())
        return known.brokers == up and caught_up

    def _coordinated(self, group: str) -> bool:
        up = self._up()
        node = probe.find_coordinator(self.address(up[0]), group, ANSWER_SECONDS)
        return node in up and probe.coordinates(self.address(node), group, ANSWER_SECONDS)

    def _group_of_each_partition(self) -> list[str]:
        """Return one group name for each partition of `__consumer_offsets`."""
        count = int(self._overrides.get("offsets.topic.num.partitions", settings.OFFSETS_PARTITIONS))
        names: dict[int, str] = {}
        for number in range(100 * count):
            names.setdefault(_java_hash(f"probe-{number}") % count, f"probe-{number}")
        return [names[partition] for partition in range(count)]

    def _knows(self, node: int, keys: set[tuple[str, int]], replicas: int) -> bool:
        known = probe.metadata(self.address(node), ANSWER_SECONDS)
        return all(
            known.leaders.get(key, probe.NO_LEADER) != probe.NO_LEADER and len(known.in_sync[key]) == replicas
            for key in keys
        )

    def _answer(self, what: str, ask: Callable[[tuple[str, int]], int | None]) -> int:
        found: list[int] = []

        def answered() -> bool:
            node = ask(self.address(self._up()[0]))
            found.extend([] if node is None else [node])
            return bool(found)

        self._wait(what, answered)
        return found[0]

    def _wait(self, what: str, reached: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not _false_on_error(lambda: bool(self._up()) and reached()):
            for node, broker in self._brokers.items():
                if node not in self._paused and broker.process.returncode not in (None, -9):
                    broker.check()
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {b.name}\n{b.log_tail()}" for b in self._brokers.values())
                raise LocalKafkaError(f"{what} was not ready after {seconds} s:\n{logs}")
            time.sleep(POLL_SECONDS)


def _false_on_error(reached: Callable[[], bool]) -> bool:
    """Treat a broker that refuses or drops a connection as not started yet."""
    try:
        return reached()
    except OSError:
        return False


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
