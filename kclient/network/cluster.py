"""The cluster: send a request to a broker by its id or to any broker, and keep metadata up to date.

A request uses the newest version that the broker, kclient and the request's content allow. If the broker is not
connected, the request waits for the connection and its backoff, within the request's timeout. Failures are raised as
typed errors; the caller decides whether to retry. Each lost connection and each failed attempt requests a metadata
update.
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
from kclient.network.sasl import Authenticator, authenticator_of
from kclient.network.tls import tls_of
from kclient.network.transport import ReceiveBudget
from kclient.protocol.message import Message
from kclient.protocol.primitives import Uuid
from kclient.runtime import Runtime
from kclient.text import LONGEST_NAME
from kclient.types import Broker, TopicPartition

logger: Final = get_logger("kclient.connection")

SHORTEST_IDLE_SECONDS: Final = (
    1.0  # with less, a connection might be closed and opened again without ever being used
)
CANONICAL: Final = "resolve_canonical_bootstrap_servers_only"


class Cluster:
    """Connections, metadata and routing of one client. Call `start` first and `close` last."""

    def __init__(self, config: Config, runtime: Runtime, metrics: NetworkMetrics | None = None) -> None:
        self.metadata: Final = MetadataCache()
        self._config = config
        self._runtime = runtime
        self._request_timeout = config.request_timeout_ms / 1000
        self._authenticator = authenticator_of(config, runtime)
        self._context = ConnectionContext(
            connection_settings(config, self._authenticator, self.metadata),
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

    # --- start and close

    async def start(self) -> None:
        """Connect to a bootstrap server, read metadata, connect to one of the brokers that it names.

        Every server and every address is tried once. Raise a ConnectError: NameResolutionError, PortClosedError,
        VersionError (not Kafka), PeerSpeaksTlsError, or AdvertisedListenerError if the bootstrap server works and
        none of the advertised addresses does. A failed start may be repeated, unless no name resolved within
        bootstrap_resolve_timeout_ms.
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
                    other.disconnect()  # one is enough; another may become ready a moment later
            await self._first_metadata()
            await first_ready(self._pool.each())
            self._require_open()
        except BaseException:
            self._pool.disconnect()  # a failed start leaves nothing open, so that it can be repeated
            self.metadata.forget_brokers()
            raise
        for node in self._pool.bootstrap:
            node.disconnect()
        self._task = asyncio.create_task(self._updates.run(), name="kclient metadata")
        self._task.add_done_callback(self._task_over)

    async def _resolve_bootstrap(self) -> None:
        """Wait until a bootstrap server resolves (KIP-909). With a timeout of 0, connecting raises the error."""
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
        """Close every connection and wait at most `timeout` seconds for the transports. Waiting requests fail."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._pool.close(timeout)
        if self._authenticator is not None:
            await self._authenticator.close(timeout)

    async def _first_metadata(self) -> None:
        """Read metadata from the bootstrap server and retry for at most request_timeout_ms."""
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
        """Set the topics whose metadata is kept up to date; None for all. New topics are requested at once."""
        self._updates.set_topics(topics)

    def set_topic_ids(self, topic_ids: Iterable[Uuid]) -> None:
        """Set topics by id. They are requested while `set_topics` has set no names."""
        self._updates.set_topic_ids(topic_ids)

    def request_update(self, reason: str, *, reset_backoff: bool = True) -> None:
        """Request a metadata update; several requests before it share one.

        With `reset_backoff=False` (a Fetch got a stale leader error) the backoff after responses without progress
        keeps growing.
        """
        self._updates.request_update(reason, reset_backoff=reset_backoff)

    def update_last_seen_epoch(self, tp: TopicPartition, epoch: int | None) -> None:
        """Note a leader epoch from a seek, a committed offset or a response. Older metadata is ignored from now on.

        If the epoch is newer than the last one seen, request an update. Java: Metadata.updateLastSeenEpochIfNewer.
        """
        if epoch is not None and self.metadata.update_last_seen_epoch(tp, epoch):
            self.request_update("a newer leader epoch was seen")

    async def update_now(self, timeout: float) -> None:
        """Update the metadata and wait for the response. Raise DeadlineError after `timeout` seconds."""
        await self._updates.update_now(timeout)

    def learn_broker(self, node_id: int, host: str, port: int) -> None:
        """Note the address of a broker that another response named, such as a coordinator that metadata lacks."""
        self.metadata.learn_broker(Broker(node_id, host, port))

    async def describe_topics(
        self, topics: Sequence[str] | None, *, allow_auto_create: bool, timeout: float
    ) -> MetadataResponse:
        """Return any broker's metadata of topics (None: all) and store it in the cache. Retry while brokers fail.

        The caller handles the error codes in the response. Raise DeadlineError after `timeout` seconds.
        """
        request, lowest = metadata_request(topics, allow_auto_create)

        async def ask() -> MetadataResponse:
            try:
                version, response = await self._ask_metadata(request, lowest)
            except VersionError:  # brokers before 0.11 have no field allow_auto_topic_creation
                if not self._config.allow_auto_create_topics:
                    raise
                version, response = await self._ask_metadata(*metadata_request(topics, True))
            self.metadata.apply(response, version, whole=False)
            return response

        backoff = Backoff.for_retries(self._config, self._runtime)
        return await retry_until_answered(ask, backoff, timeout, "describing topics")

    async def _ask_metadata(self, request: MetadataRequest, lowest: int) -> tuple[int, MetadataResponse]:
        version, response = await self.request_any(request, min_version=lowest)
        if not isinstance(response, MetadataResponse):
            raise InternalError(f"Metadata was answered by {type(response).__name__}")
        drop_unrequested_topics(request, response)
        return version, response

    # --- requests

    @property
    def features(self) -> Features:
        """The APIs and finalized features, known as soon as one broker is connected."""
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
        """Send a request to a broker and return its response. Arguments and errors as in `request_versioned`."""
        _, response = await self.request_versioned(
            node_id,
            message,
            purpose=purpose,
            timeout=timeout,
            min_version=min_version,
            max_version=max_version,
        )
        return response

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
        """Send a request to a broker; return the version that was used, and the response.

        Each `purpose` has its own connection. `timeout` (seconds, default request_timeout_ms) includes connecting;
        when it passes, the connection is closed, because TCP would deliver no later response before the missing one.
        To stop waiting sooner, cancel the call (`asyncio.timeout`): the connection stays open. Raise ConnectError
        (retriable; VersionError is not), DeadlineError, ProtocolDecodeError or ClosedError.
        """
        return await self._exchange(self._node(node_id, purpose), message, timeout, min_version, max_version)

    async def connect(self, node_id: int, purpose: str = "") -> None:
        """Connect to a broker unless it is connected. Raise ConnectError, ClosedError or, after request_timeout_ms,
        DeadlineError.
        """
        node = self._node(node_id, purpose)
        await self._connection(
            node, "a request", self._request_timeout, self._runtime.now() + self._request_timeout
        )

    def start_connecting(self, node_id: int, purpose: str = "") -> None:
        """Start to connect to a broker in the background. Raise ConnectError (broker not known) or ClosedError."""
        self._node(node_id, purpose).start_connecting()

    def is_connected(self, node_id: int, purpose: str = "") -> bool:
        """Return whether there is a connection to the broker for this purpose."""
        return self._pool.is_connected(node_id, purpose)

    @property
    def has_connection(self) -> bool:
        """Whether there is a connection to any broker."""
        return self._pool.has_connection

    @property
    def all_unreachable(self) -> bool:
        """Whether no broker is connected and the last attempt at each of them failed."""
        return self._pool.all_unreachable

    async def request_any(
        self,
        message: Message,
        *,
        timeout: float | None = None,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> tuple[int, Message]:
        """Send a request to the least loaded node; return the version that was used, and the response."""
        self._require_open()
        return await self._exchange(self._any_node(), message, timeout, min_version, max_version)

    def disconnect(self, node_id: int, purpose: str) -> None:
        """Close the connection to a broker for this purpose; its requests in flight fail."""
        self._pool.drop(node_id, purpose)

    def usable_version(
        self, node_id: int, message: type[Message], *, min_version: int = 0, max_version: int | None = None
    ) -> int | None:
        """Return the version that a request to this broker would have; None while not connected. Raise VersionError."""
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
        # Before the choice of a node: whether a backoff happens to be over now must not decide about a rebootstrap.
        if self._pool.lost:
            self._rebootstrap("no broker can be reached")
        return self._pool.least_loaded() or self._pool.soonest()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("The client is closed, and a request came after close(). Create a new client.")

    # --- failures

    def _on_failure(self, node: BrokerConnection, error: KclientError) -> None:
        misrouted = isinstance(error, ConnectError) and error.stage == MISROUTED
        # Not during start(): it already uses the bootstrap servers, and tries the other brokers next.
        if misrouted and self._task is not None:
            self._rebootstrap(f"{node.peer} is another broker now")
        self._updates.request_update(f"connection to {node.peer} failed", reset_backoff=False)

    def _rebootstrap(self, reason: str) -> None:
        """Forget the brokers and start over from the bootstrap servers (KIP-899, KIP-1102)."""
        if self._config.metadata_recovery_strategy != "rebootstrap":
            return
        logger.warning("beginning again with the bootstrap servers: %s", reason, extra={"reason": reason})
        self.metadata.forget_brokers()
        self._pool.disconnect()


def connection_settings(
    config: Config, authenticator: Authenticator | None, metadata: MetadataCache
) -> ConnectionSettings:
    """Return the settings of every connection of a client. Raise ConfigError for an unusable certificate store."""
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
        authenticate=authenticator,
        # As much as all Fetches request together plus one frame of the largest size: one large announced response
        # never blocks the others.
        receive_budget=ReceiveBudget(config.buffer_memory_bytes + config.max_frame_bytes),
        cluster_id=lambda: _short_cluster_id(metadata.cluster_id) if checks else None,
    )


def _short_cluster_id(cluster_id: str | None) -> str | None:
    """Return the cluster id if it is short enough for every ApiVersions request. A broker chose it; Kafka's have 22
    characters.
    """
    return cluster_id if cluster_id is not None and len(cluster_id) <= LONGEST_NAME else None
