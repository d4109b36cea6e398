"""The cluster as the flows see it: ask a broker by its id, ask any broker, know who leads what.

A request goes to a node, over that node's connection, in the newest version that both sides and the request allow.
A node that is not connected is connected first; one that is backing off is waited for, within the request's timeout.
Whatever fails is told to the caller as a typed error: retrying is the business of the flow that knows why it asks.
Any lost connection and any failed attempt asks for a metadata update.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Sequence
from typing import Final

from kclient.config import Config
from kclient.errors import (
    ClosedError,
    ConnectError,
    InternalError,
    KclientError,
    NameResolutionError,
    VersionError,
)
from kclient.generated.metadata_request import MetadataRequest
from kclient.generated.metadata_response import MetadataResponse
from kclient.log import get_logger
from kclient.metrics.network import NetworkMetrics
from kclient.metrics.registry import Registry
from kclient.network.api_versions import Features
from kclient.network.backoff import Backoff
from kclient.network.broker import BrokerConnection, ConnectionContext
from kclient.network.connect import canonical_servers, until_resolved
from kclient.network.connection import Connection, ConnectionSettings
from kclient.network.errors import MISROUTED, no_connection
from kclient.network.metadata import MetadataCache
from kclient.network.metadata_updater import (
    MetadataUpdater,
    drop_unrequested_topics,
    metadata_request,
    retry_until_answered,
)
from kclient.network.peer import parse_servers
from kclient.network.pool import ConnectionPool, first_ready, shuffled
from kclient.network.sasl import authenticator_of
from kclient.network.tls import tls_of
from kclient.network.transport import ReceiveBudget
from kclient.protocol.message import Message
from kclient.protocol.primitives import Uuid
from kclient.runtime import Runtime
from kclient.text import LONGEST_NAME
from kclient.types import Broker, TopicPartition

logger = get_logger("kclient.connection")

SHORTEST_IDLE_SECONDS: Final = 1.0  # a connection that is closed sooner might never be used, only made anew
CANONICAL: Final = "resolve_canonical_bootstrap_servers_only"


class Cluster:
    """Connections, metadata and routing of one client. Call `start` first and `close` last."""

    def __init__(self, config: Config, runtime: Runtime, metrics: NetworkMetrics | None = None) -> None:
        self.metadata = MetadataCache()
        self._config = config
        self._runtime = runtime
        self._request_timeout = config.request_timeout_ms / 1000
        self._context = ConnectionContext(
            _settings(config, runtime, self.metadata),
            runtime,
            (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms),
            (config.socket_connection_setup_timeout_ms, config.socket_connection_setup_timeout_max_ms),
            self._on_failure,
            metrics=metrics or NetworkMetrics(Registry()),
        )
        self._pool = ConnectionPool(parse_servers(config.bootstrap_servers), self.metadata, self._context)
        self._updates = MetadataUpdater(self.metadata, self._ask_metadata, self._rebootstrap, config, runtime)
        self._task: asyncio.Task[None] | None = None
        self._unresolved: NameResolutionError | None = None  # for good: the bootstrap servers' names
        self._closed = False

    # --- life

    async def start(self) -> None:
        """Find the cluster: connect to any bootstrap server, read metadata, connect to any broker it names.

        Raises the ConnectError that says why it cannot be done: NameResolutionError, PortClosedError, VersionError
        (not Kafka), PeerSpeaksTlsError, or AdvertisedListenerError when the bootstrap server works and no address
        that it names does. Every server and every address is tried once; a start that failed may be repeated, but
        for one whose names did not resolve within bootstrap_resolve_timeout_ms.
        """
        await self._resolve_bootstrap()
        try:
            if self._config.client_dns_lookup == CANONICAL:
                servers = parse_servers(self._config.bootstrap_servers)
                self._pool = ConnectionPool(
                    await canonical_servers(servers, self._runtime), self.metadata, self._context
                )
            server = await first_ready(shuffled(self._pool.bootstrap, self._runtime))
            self._context.via = server.peer.address
            for other in self._pool.bootstrap:
                if other is not server:
                    other.disconnect()  # one is enough, also of those that are ready a moment later
            await self._first_metadata()
            await first_ready(self._pool.each())
            self._require_open()
        except BaseException:
            self._pool.disconnect()  # nothing is left of a start that failed; it may be tried again
            self.metadata.forget_brokers()
            raise
        for node in self._pool.bootstrap:
            node.disconnect()
        self._task = asyncio.create_task(self._updates.run(), name="kclient metadata")
        self._task.add_done_callback(self._task_over)

    async def _resolve_bootstrap(self) -> None:
        """With a time for it, wait until a bootstrap server resolves; without one, connecting tells what does not."""
        timeout = self._config.bootstrap_resolve_timeout_ms / 1000
        if self._unresolved is not None:
            raise copy.copy(self._unresolved)
        if timeout == 0:
            return
        try:
            await until_resolved(
                parse_servers(self._config.bootstrap_servers),
                self._runtime,
                timeout,
                self._config.retry_backoff_ms / 1000,
            )
        except NameResolutionError as exc:
            self._unresolved = exc
            raise

    async def close(self, timeout: float) -> None:
        """Close every connection and wait at most `timeout` seconds for their ends; whatever waits fails."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._pool.close(timeout)

    async def _first_metadata(self) -> None:
        """Metadata from the bootstrap server, asked again as long as one request may take."""
        backoff = Backoff.for_retries(self._config, self._runtime)
        deadline = self._runtime.now() + self._request_timeout
        while True:
            try:
                await self._updates.update()
                return
            except KclientError as exc:
                delay = backoff.next()
                if not exc.retriable or self._runtime.now() + delay >= deadline:
                    raise
            await asyncio.sleep(delay)

    def _task_over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error("the metadata task ended", exc_info=bug)
            self.metadata.store_error(InternalError(f"the metadata task ended: {bug!r}. Please report it."))

    # --- metadata

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """The topics whose metadata is kept fresh; None for all. A new one is asked for at once."""
        self._updates.set_topics(topics)

    def set_topic_ids(self, topic_ids: Iterable[Uuid]) -> None:
        """As `set_topics`, by ids, while that says that no topic is wanted by name."""
        self._updates.set_topic_ids(topic_ids)

    def request_update(self, reason: str, *, reset_backoff: bool = True) -> None:
        """Ask for a metadata update; many requests are one. With `reset_backoff=False` (a fetch that was told of a
        stale leader) an answer without news keeps being followed by longer and longer pauses.
        """
        self._updates.request_update(reason, reset_backoff=reset_backoff)

    def saw_leader_epoch(self, tp: TopicPartition, epoch: int | None) -> None:
        """Someone named a leader epoch of a partition: older metadata does not count from now on, newer is asked for.

        Java's Metadata.updateLastSeenEpochIfNewer, for what users and brokers name outside of Metadata.
        """
        if epoch is not None and self.metadata.update_last_seen_epoch(tp, epoch):
            self.request_update("a newer leader epoch was seen")

    async def update_now(self, timeout: float) -> None:
        """Update the metadata and wait for it. Raises DeadlineError."""
        await self._updates.update_now(timeout)

    def learn_broker(self, node_id: int, host: str, port: int) -> None:
        """Note where a broker is that another answer named, such as a coordinator that metadata lacks."""
        self.metadata.learn_broker(Broker(node_id, host, port))

    async def describe_topics(
        self, topics: Sequence[str] | None, *, allow_auto_create: bool, timeout: float
    ) -> MetadataResponse:
        """Ask any broker about topics (None: all), trying again while brokers fail; the cache learns from the answer.

        The answer's error codes are the caller's business. Raises DeadlineError.
        """
        request, lowest = metadata_request(topics, allow_auto_create)

        async def ask() -> MetadataResponse:
            try:
                version, answer = await self._ask_metadata(request, lowest)
            except VersionError:  # brokers before 0.11 cannot be told that nothing is to be created
                if not self._config.allow_auto_create_topics:
                    raise
                version, answer = await self._ask_metadata(*metadata_request(topics, True))
            self.metadata.apply(answer, version, whole=False)
            return answer

        backoff = Backoff.for_retries(self._config, self._runtime)
        return await retry_until_answered(ask, backoff, timeout, "describing topics")

    async def _ask_metadata(self, request: MetadataRequest, lowest: int) -> tuple[int, MetadataResponse]:
        version, answer = await self.request_any(request, min_version=lowest)
        if not isinstance(answer, MetadataResponse):
            raise InternalError(f"Metadata was answered by {type(answer).__name__}")
        drop_unrequested_topics(request, answer)
        return version, answer

    # --- requests

    @property
    def features(self) -> Features:
        """What brokers offer and the cluster has switched on, known as soon as one is connected."""
        return self._context.settings.features

    async def request(
        self,
        node_id: int,
        message: Message,
        *,
        purpose: str = "",
        timeout: float | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> Message:
        """Send a request to a broker and return its answer; see `request_versioned`."""
        _, answer = await self.request_versioned(
            node_id,
            message,
            purpose=purpose,
            timeout=timeout,
            min_version=min_version,
            max_version=max_version,
        )
        return answer

    async def request_versioned(
        self,
        node_id: int,
        message: Message,
        *,
        purpose: str = "",
        timeout: float | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> tuple[int, Message]:
        """Send a request to a broker; return the version that was used, and the answer.

        `purpose` other than "" is a connection of its own. `timeout` (seconds, default request_timeout_ms) is
        how long the broker may take, connecting included; when it passes, the connection is closed, because nothing
        on it can be trusted to come. To stop waiting sooner, cancel (`asyncio.timeout`): that costs the connection
        nothing. Raises ConnectError (retriable, or not: VersionError), DeadlineError, ProtocolDecodeError, ClosedError.
        """
        return await self._exchange(self._node(node_id, purpose), message, timeout, min_version, max_version)

    async def connect(self, node_id: int, purpose: str = "") -> None:
        """Connect to a broker, within the request timeout, if need be. Raises ConnectError, ClosedError."""
        node = self._node(node_id, purpose)
        await self._connection(
            node, "a request", self._request_timeout, self._runtime.now() + self._request_timeout
        )

    def start_connecting(self, node_id: int, purpose: str = "") -> None:
        """Begin to connect to a broker that will be asked soon, without waiting. Raises ConnectError, ClosedError."""
        self._node(node_id, purpose).start_connecting()

    def is_connected(self, node_id: int, purpose: str = "") -> bool:
        """Whether a request would go out at once, or wait for its turn on a connection."""
        return self._pool.is_connected(node_id, purpose)

    @property
    def in_touch(self) -> bool:
        """Whether there is a connection to any broker."""
        return self._pool.in_touch

    @property
    def out_of_reach(self) -> bool:
        """Whether there is no connection to any broker, and none could be had when each was tried last."""
        return self._pool.out_of_reach

    async def request_any(
        self,
        message: Message,
        *,
        timeout: float | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> tuple[int, Message]:
        """Send a request to the least loaded node; return the version that was used, and the answer."""
        self._require_open()
        return await self._exchange(self._any_node(), message, timeout, min_version, max_version)

    def disconnect(self, node_id: int, purpose: str) -> None:
        """Close the connection that a broker has for this purpose; what is in flight on it fails."""
        self._pool.drop(node_id, purpose)

    def usable_version(
        self, node_id: int, message: type[Message], *, min_version: int = 0, max_version: int | None = None
    ) -> int | None:
        """The version of a request that would go to this broker, None while not connected. Raises VersionError."""
        node = self._pool.known(node_id)
        if node is None or node.connection is None:
            return None
        return node.connection.version_for(message, min_version, max_version)

    async def _exchange(
        self,
        node: BrokerConnection,
        message: Message,
        timeout: float | None,
        lowest: int,
        highest: int | None,
    ) -> tuple[int, Message]:
        seconds = self._request_timeout if timeout is None else timeout
        deadline = self._runtime.now() + seconds
        connection = await self._connection(node, message.NAME.removesuffix("Request"), seconds, deadline)
        version = connection.version_for(type(message), lowest, highest)
        return version, await connection.request(message, version, deadline)

    async def _connection(
        self, node: BrokerConnection, waiting: str, seconds: float, deadline: float
    ) -> Connection:
        try:
            async with asyncio.timeout_at(deadline):
                connection = await node.ready()
        except TimeoutError as exc:
            raise no_connection(node.peer, waiting, seconds) from exc
        self._require_open()
        return connection

    def _node(self, node_id: int, purpose: str) -> BrokerConnection:
        self._require_open()
        try:
            return self._pool.node(node_id, purpose)
        except KclientError:
            self.request_update(f"node {node_id} is not known", reset_backoff=False)
            raise

    def _any_node(self) -> BrokerConnection:
        if self._pool.lost:  # whether a node's backoff is over just now must not decide
            self._rebootstrap("no broker can be reached")
        return self._pool.least_loaded() or self._pool.soonest()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the client is closed. It was asked for something after close. Open a new one.")

    # --- trouble

    def _on_failure(self, node: BrokerConnection, problem: KclientError) -> None:
        misrouted = isinstance(problem, ConnectError) and problem.stage == MISROUTED
        if (
            misrouted and self._task is not None
        ):  # a start is at the bootstrap servers, and tries other brokers
            self._rebootstrap(f"{node.peer} is another broker now")
        self._updates.request_update(f"trouble with {node.peer}", reset_backoff=False)

    def _rebootstrap(self, reason: str) -> None:
        """Forget the brokers and begin again with the bootstrap servers (KIP-899, KIP-1102)."""
        if self._config.metadata_recovery_strategy != "rebootstrap":
            return
        logger.warning("beginning again with the bootstrap servers: %s", reason, extra={"reason": reason})
        self.metadata.forget_brokers()
        self._pool.disconnect()


def _settings(config: Config, runtime: Runtime, metadata: MetadataCache) -> ConnectionSettings:
    checks = config.metadata_cluster_check_enable and config.metadata_recovery_strategy == "rebootstrap"
    idle_ms = config.connections_max_idle_ms
    return ConnectionSettings(
        client_id=config.client_id,
        max_frame_bytes=config.max_frame_bytes,
        request_timeout=config.request_timeout_ms / 1000,
        idle_timeout=None if idle_ms < 0 else max(idle_ms / 1000, SHORTEST_IDLE_SECONDS),
        send_buffer_bytes=config.send_buffer_bytes,
        receive_buffer_bytes=config.receive_buffer_bytes,
        tls=tls_of(config),
        authenticate=authenticator_of(config, runtime),
        # What Fetch asks for at most, and one answer of any size: an announced one alone never holds up the others.
        receive_budget=ReceiveBudget(config.buffer_memory_bytes + config.max_frame_bytes),
        cluster_id=lambda: _sayable(metadata.cluster_id) if checks else None,
    )


def _sayable(cluster_id: str | None) -> str | None:
    """A cluster id that goes into every first request; a peer chose it, and Kafka's own have 22 characters."""
    return cluster_id if cluster_id is not None and len(cluster_id) <= LONGEST_NAME else None
