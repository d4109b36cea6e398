"""A Kafka cluster in this process: real protocol, real sockets, real record batches; no Java.

    with EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster:      # on a thread of its own
        cluster.produce("orders", [b"one", b"two"])
        consumer = Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, group_id="billing")
        cluster.kill(2)

    async with EmbeddedCluster(brokers=3) as cluster:                      # on the running loop
        ...

The methods that a test calls are in `control/`, one mixin for each subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from kclient.embedded import log_cleaner
from kclient.embedded.broker import EmbeddedBroker
from kclient.embedded.clock import Clock, ClusterClock
from kclient.embedded.control import topics as topic_controls
from kclient.embedded.control.brokers import BrokerControls
from kclient.embedded.control.faults import FaultControls
from kclient.embedded.control.groups import GroupControls
from kclient.embedded.control.leaders import LeaderControls
from kclient.embedded.control.security import SecurityControls
from kclient.embedded.control.topics import TopicControls
from kclient.embedded.listener import PLAINTEXT, Listener, Serve, serve
from kclient.embedded.loop_thread import ClusterLoop, control
from kclient.embedded.oauth import OAuthValidator
from kclient.embedded.observer import LoggedRequest, Observer, RequestLog
from kclient.embedded.releases import Release
from kclient.embedded.settings import settings
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError, InternalError, UsageError
from kclient.runtime import Runtime


class EmbeddedCluster(
    TopicControls, BrokerControls, LeaderControls, GroupControls, SecurityControls, FaultControls
):
    """See the module.

    `brokers` is their number, with ids from 1; `release` the Kafka whose API versions and behaviour they show, from
    "0.10.0" to "4.4"; `config` broker settings under Kafka's names; `topics` name → partitions, made at the start;
    `racks` one for each broker; `addresses` host and port for each broker instead of loopback and any free port;
    `serve` opens a broker's port, for networks that are none; `listeners` are more ways to reach every broker beside
    PLAINTEXT, found with `servers(name)`: `Listener("SASL_SSL", ssl=context, mechanisms=("PLAIN", "SCRAM-SHA-256"))`;
    `users` name → password, for those with mechanisms; `oauth` how the tokens of OAUTHBEARER are checked, instead of
    accepting unsecured ones of anyone.

    Raise ConfigError for a setting that is not honoured, ArgumentError for an unknown release.
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
        serve: Serve = serve,
        listeners: Sequence[Listener] = (),
        users: Mapping[str, str] | None = None,
        oauth: OAuthValidator | None = None,
    ) -> None:
        if brokers < 1 or len(racks or ()) not in (0, brokers) or len(addresses or ()) not in (0, brokers):
            raise ArgumentError(
                "A cluster has at least one broker, and one rack and address for each or none."
            )
        runtime = runtime or Runtime()
        self.state: ClusterState = ClusterState(
            cluster_id="embedded-" + runtime.random_bytes(6).hex(),
            release=Release.parse(release),
            settings=settings(config or {}, brokers),
            runtime=runtime,
            clock=Clock(runtime),
            serve=serve,
            oauth=oauth or OAuthValidator(),
        )
        self._brokers = {}
        for number in range(brokers):
            host, port = addresses[number] if addresses else ("127.0.0.1", 0)
            rack = racks[number] if racks else None
            own_listeners = [Listener(PLAINTEXT, host, port), *(one.of_broker(number) for one in listeners)]
            self._brokers[number + 1] = EmbeddedBroker(self.state, number + 1, own_listeners, rack)
        self.state.brokers.update(self._brokers)
        for name, password in (users or {}).items():
            self.state.users.add(name, password, runtime)
        self.clock: Final = ClusterClock(self, self.state.clock)
        self._requests = RequestLog()
        self.state.observers.append(self._requests)
        if not isinstance(topics, Mapping | None):
            raise ArgumentError(f"Topics come with their partitions, as {{'orders': 6}}, not as {topics!r}.")
        self._topics = dict(topics or {})
        self._turns = {}
        self._cluster_loop: ClusterLoop | None = None
        self._ran = False

    # --- life

    @property
    def cluster_loop(self) -> ClusterLoop:
        """The loop that it runs on. Raise UsageError before the start and after the end."""
        if self._cluster_loop is None:
            raise UsageError("The cluster is not running; use it inside its `with` block.")
        return self._cluster_loop

    def __enter__(self) -> Self:
        cluster_loop = self._begin(ClusterLoop.new)
        try:
            cluster_loop.call(self._start)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self._raise_bugs(error)

    def _leave(self) -> None:
        cluster_loop = self.cluster_loop
        try:
            cluster_loop.call(self._stop)
        finally:
            self._cluster_loop = None
            cluster_loop.end()

    async def __aenter__(self) -> Self:
        self._begin(ClusterLoop.here)
        try:
            await self._start()
        except BaseException:
            await self._depart()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._depart()
        self._raise_bugs(error)

    def _raise_bugs(self, error: BaseException | None) -> None:
        """Raise InternalError for a request that a broker could not answer, unless the block failed already."""
        if error is None and self.state.bugs:
            bug = self.state.bugs[0]
            raise InternalError(
                f"A broker failed to answer a request: {bug!r}. If an edit given to `on` or an observer raised it, "
                "correct that; else please report it."
            ) from bug

    async def _depart(self) -> None:
        self._stop()
        self._cluster_loop = None
        await asyncio.sleep(0)  # the cancelled tasks end

    def _begin(self, cluster_loop: Callable[[], ClusterLoop]) -> ClusterLoop:
        if self._ran:
            raise UsageError("A cluster runs once; make another EmbeddedCluster.")
        self._cluster_loop, self._ran = cluster_loop(), True
        return self._cluster_loop

    async def _start(self) -> None:
        for broker in self._brokers.values():
            await broker.start()
        log_cleaner.watch(self.state)
        for name, partitions in self._topics.items():
            topic_controls.create(self.state, name, partitions)

    def _stop(self) -> None:
        for broker in self._brokers.values():
            broker.stop()
        self.state.clock.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where all brokers listen, also those that are down."""
        return self.servers(PLAINTEXT)

    def servers(self, listener: str) -> str:
        """Where all brokers' listeners of this name listen, whatever they advertise."""
        found = [broker.listener(listener) for broker in self.state.brokers.values()]
        return ",".join(one.server_address for one in found if one is not None)

    # --- watching

    @property
    def requests(self) -> list[LoggedRequest]:
        """The newest requests that came in whole, oldest first, with their responses, decoded; also after the end."""
        return (
            self._requests.entries()
            if self._cluster_loop is None
            else self._cluster_loop.call(self._requests.entries)
        )

    @control
    def forget_requests(self) -> None:
        """Clear the log of requests."""
        self._requests.clear()

    @control
    def observe(self, observer: Observer) -> None:
        """Notify an observer of all later events, on the cluster's loop."""
        self.state.observers.append(observer)
