"""The client of a query's driver: created on first use, in the process that uses it, and kept for the query.

Spark ends a query at the first error of the driver, so retriable errors are retried here until a deadline. Only
`connect` tries once: a wrong address is reported as soon as a job starts. The client lives on
kclient's loop thread, which keeps its connections alive between calls. Does not import pyspark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import attrs

from kclient.bridge import LoopThread
from kclient.config import Config
from kclient.errors import ClosedError, DeadlineError, KclientError
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.spark.cluster_lookup import ClusterLookup
from kclient.spark.options import SourceOptions

log: Final = get_logger("kclient.spark")

T = TypeVar("T")

CLOSE_SECONDS: Final = 2.0


@attrs.frozen
class ClusterHandle:
    """A connected cluster, with its configuration and runtime."""

    cluster: Cluster
    config: Config
    runtime: Runtime

    @property
    def lookup(self) -> ClusterLookup:
        """Lookups of partitions and offsets."""
        return ClusterLookup(self.cluster, self.config, self.runtime)


ClusterCall = Callable[[ClusterHandle], Awaitable[T]]


class DriverClient:
    """Runs operations on the cluster for one query, one after the other."""

    def __init__(self, options: SourceOptions, runtime: Runtime | None = None) -> None:
        self._options = options
        self._runtime = runtime or Runtime()
        self._thread: LoopThread | None = None
        self._handle: ClusterHandle | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    def connect(self) -> None:
        """Connect to the cluster; try once, so that a wrong address is reported at once.

        Raises ConnectError, AuthenticationError, ClosedError.
        """
        self._run(self._connect_once)

    def call(self, operation: ClusterCall[T], timeout: float | None = None) -> T:
        """Run an operation on the cluster and return its result; retry retriable errors for `timeout` seconds.

        Without a timeout it is `kafka.default.api.timeout.ms`, and each request of the operation may take as long.
        Raises ConnectError, AuthorizationError, DeadlineError, BrokerError, ClosedError, and what the operation raises.
        """
        result: T = self._run(lambda: self._call(operation, timeout))
        return result

    def now(self) -> float:
        """Return the time of the loop in seconds; 0 before the first call."""
        return 0.0 if self._thread is None else self._thread.loop.time()

    def close(self) -> None:
        """Close the client and its connections after the running call; later calls raise ClosedError."""
        self._closed = True
        if self._thread is not None:
            try:
                self._thread.run(self._close)
            finally:
                self._thread.leave(self)
                self._thread = None

    def _run(self, function: Callable[[], Awaitable[T]]) -> T:
        if self._closed:
            raise ClosedError(
                "The query's client is closed. It was asked after its end. Start the query again."
            )
        if self._thread is None:
            self._thread = LoopThread.join(self)
        result: T = self._thread.run(function)
        return result

    async def _connect_once(self) -> None:
        async with self._lock:
            if self._handle is None:
                await self._connect(self._options.config("driver"))

    async def _call(self, operation: ClusterCall[T], timeout: float | None) -> T:
        async with self._lock:
            if timeout is None:
                return await self._call_with_retries(operation, None)
            try:
                async with asyncio.timeout(timeout):
                    return await self._call_with_retries(operation, timeout)
            except TimeoutError as exc:
                if isinstance(exc, KclientError):
                    raise
                raise DeadlineError(
                    f"The brokers gave no response within {timeout:.3g} s. They are busy, restarting or out of reach. "
                    "Look at the brokers; the next batch asks again.",
                    waiting_for="the driver's question",
                    timeout=timeout,
                ) from exc

    async def _call_with_retries(self, operation: ClusterCall[T], timeout: float | None) -> T:
        config = self._options.config("driver")
        backoff = Backoff.for_retries(config, self._runtime)
        deadline = self._runtime.now() + (
            config.default_api_timeout_ms / 1000 if timeout is None else timeout
        )
        while True:
            try:
                return await operation(self._handle or await self._connect(config))
            except KclientError as exc:
                pause = backoff.next()
                if not exc.retriable or self._runtime.now() + pause >= deadline:
                    raise
                log.info("asking again in %.1f s: %s", pause, exc)
            await asyncio.sleep(pause)

    async def _connect(self, config: Config) -> ClusterHandle:
        cluster = Cluster(config, self._runtime)
        cluster.set_topics(self._options.selection.topics)
        try:
            await cluster.start()
        except BaseException:
            await cluster.close(CLOSE_SECONDS)
            raise
        self._handle = ClusterHandle(cluster, config, self._runtime)
        return self._handle

    async def _close(self) -> None:
        async with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                await handle.cluster.close(CLOSE_SECONDS)
