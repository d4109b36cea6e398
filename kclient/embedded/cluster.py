"""A Kafka cluster in this process: real protocol, real sockets, real record batches; no Java.

    with EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster:      # on a thread of its own
        cluster.produce("orders", [b"one", b"two"])
        consumer = Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, group_id="billing")
        cluster.kill(2)

    async with EmbeddedCluster(brokers=3) as cluster:                      # on the running loop
        ...

Everything that a test wants to happen is a method here. They may be called from any thread; on the cluster's own loop
those that take time (`restart`) give back a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from kclient.embedded import controller
from kclient.embedded.broker import Broker
from kclient.embedded.clock import Clock
from kclient.embedded.home import Home, control
from kclient.embedded.listener import Listener
from kclient.embedded.releases import Release
from kclient.embedded.settings import settings
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.errors import ArgumentError, UsageError
from kclient.runtime import Runtime
from kclient.types import TopicPartition

PLAINTEXT = "PLAINTEXT"


class EmbeddedCluster:
    """See the module.

    `brokers` is their number, with ids from 1; `release` the Kafka whose API versions and behaviour they show, from
    "0.10.0" to "4.3"; `config` broker settings under Kafka's names; `topics` name → partitions, made at the start;
    `racks` one for each broker; `addresses` host and port for each broker instead of loopback and any free port.

    Raises ConfigError for a setting that is not honoured, ArgumentError for an unknown release.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        release: str = "4.3",
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, Any] | None = None,
        racks: Sequence[str] | None = None,
        addresses: Sequence[tuple[str, int]] | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        if brokers < 1 or len(racks or ()) not in (0, brokers) or len(addresses or ()) not in (0, brokers):
            raise ArgumentError(
                "A cluster has at least one broker, and one rack and address for each or none."
            )
        runtime = runtime or Runtime()
        self.state = ClusterState(
            cluster_id="embedded-" + runtime.random_bytes(6).hex(),
            release=Release.parse(release),
            settings=settings(config or {}, brokers),
            runtime=runtime,
            clock=Clock(runtime),
        )
        for number in range(brokers):
            host, port = addresses[number] if addresses else ("127.0.0.1", 0)
            rack = racks[number] if racks else None
            listeners = [Listener(PLAINTEXT, host, port)]
            self.state.brokers[number + 1] = Broker(self.state, number + 1, listeners, rack)
        self._topics = dict(topics or {})
        self._home: Home | None = None

    # --- life

    @property
    def home(self) -> Home:
        """The loop it lives on. Raises UsageError before it was started and after its end."""
        if self._home is None:
            raise UsageError("The cluster is not running; use it inside of its `with` block.")
        return self._home

    def __enter__(self) -> Self:
        self._home = Home.new()
        self._home.call(self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.home.call(self._stop)
        self.home.end()
        self._home = None

    async def __aenter__(self) -> Self:
        self._home = Home.here()
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._home = None
        await asyncio.sleep(0)  # the cancelled tasks end

    async def _start(self) -> None:
        for broker in self.state.brokers.values():
            await broker.start()
        for name, partitions in self._topics.items():
            self._create(name, partitions)

    def _stop(self) -> None:
        for broker in self.state.brokers.values():
            broker.stop()
        self.state.clock.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, also of those that are down."""
        return self.servers(PLAINTEXT)

    def servers(self, listener: str) -> str:
        """The addresses of all brokers' listeners of this name."""
        found = [broker.listener(listener) for broker in self.state.brokers.values()]
        return ",".join(f"{one.address[0]}:{one.address[1]}" for one in found if one is not None)

    # --- topics

    @control
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic, with as many replicas as brokers are up (at most 3) unless said otherwise."""
        self._create(name, partitions, replication, config)

    def _create(
        self,
        name: str,
        partitions: int,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        if name in self.state.topics:
            raise ArgumentError(f"There is a topic {name!r} already.")
        replicas = replication or min(3, len(self.state.alive()))
        controller.create_topic(self.state, name, partitions, replicas, config)

    # --- brokers

    @control
    def kill(self, node: int) -> None:
        """End a broker as SIGKILL does; the others lead its partitions at once. Nothing happens if it is down."""
        broker = self._broker(node)
        if broker.up:
            broker.stop()
            controller.broker_went(self.state, node)

    @control
    async def restart(self, node: int) -> None:
        """Start a broker that is down, on its old port."""
        broker = self._broker(node)
        if not broker.up:
            await broker.start()
            controller.broker_came(self.state, node)

    @control
    def pause(self, node: int) -> None:
        """Let a broker neither do nor say anything until `resume`, as SIGSTOP does; its connections stay."""
        self._broker(node).pause()

    @control
    def resume(self, node: int) -> None:
        """Let a paused broker go on."""
        self._broker(node).resume()

    @control
    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make another replica the leader, in a new epoch."""
        controller.set_leader(self.state, self._partition(topic, partition), node)

    @control
    def deny(self, principal: str, operation: str, resource: str) -> None:
        """Refuse from now on, say, ("User:alice", "READ", "Topic:orders"); "*" stands for anything."""
        self.state.acl.deny(principal, operation, resource)

    def _broker(self, node: int) -> Broker:
        broker = self.state.brokers.get(node)
        if broker is None:
            raise ArgumentError(
                f"There is no broker {node}; there are {', '.join(map(str, self.state.brokers))}."
            )
        return broker

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self.state.partition(TopicPartition(topic, partition))
        if found is None:
            raise ArgumentError(f"There is no partition {topic}-{partition}.")
        return found
