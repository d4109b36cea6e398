"""What runs in an executor's Python worker: one cluster per process and configuration, and the reading of a range.

Spark reuses workers and sends any partition to any of them, so connections are kept by cluster, never by partition,
and nothing of a range outlives it. The loop runs only while a fetch is waited for; what arrives in between waits in the
socket. Knows nothing of pyspark.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs

from kclient.bridge import Runner, loop_runs_here, new_runner
from kclient.config import Config
from kclient.errors import KclientError
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.spark.batching import Batcher
from kclient.spark.fetching import RangeFetcher
from kclient.spark.options import CLIENT_PREFIXES, SourceOptions
from kclient.spark.plan import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Key: TypeAlias = tuple[int, bool, str, str]

CLOSE_SECONDS: Final = 1.0
NOTICE_TURNS: Final = 2  # of the loop: one to find that a connection was closed, one to act on it


@attrs.define(eq=False)
class Client:
    """A cluster and the loop that it lives on."""

    config: Config
    runtime: Runtime
    runner: Runner
    cluster: Cluster
    topics: list[str]

    @classmethod
    def connect(cls, options: SourceOptions, topic: str) -> Client:
        """Find the cluster. Raises ConnectError."""
        config, runtime = options.config("executor"), Runtime()
        runner = new_runner()
        try:
            cluster = runner.run(_started(config, runtime, topic))
        except BaseException:
            runner.close()
            raise
        return cls(config, runtime, runner, cluster, [topic])

    def follow(self, topic: str) -> None:
        """Keep the metadata of one more topic."""
        if topic not in self.topics:
            self.topics.append(topic)
            self.run(self._learn(topic))

    async def _learn(self, topic: str) -> None:
        self.cluster.set_topics(self.topics)
        timeout = self.config.default_api_timeout_ms / 1000
        await self.cluster.describe_topics([topic], allow_auto_create=False, timeout=timeout)

    def is_well(self) -> bool:
        """Whether to go on with it. What ended while nobody ran the loop is noticed now, not by the next request."""
        self.run(self._notice())
        return not self.cluster.out_of_reach

    async def _notice(self) -> None:
        for _ in range(NOTICE_TURNS):
            await asyncio.sleep(0)

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Run the loop until the step is done."""
        return self.runner.run(step)

    def close(self) -> None:
        """End the connections and the loop."""
        try:
            self.run(self.cluster.close(CLOSE_SECONDS))
        finally:
            self.runner.close()


class ClientCache:
    """The clients of this process. A forked process starts with none: its parent's connections are not its own."""

    def __init__(self) -> None:
        self._clients: dict[Key, Client] = {}

    def borrow(self, options: SourceOptions, topic: str) -> Client:
        """The client for these options, connected on first use, and anew where no broker could be reached at last."""
        key = self._key(options)
        client = self._clients.get(key)
        if client is not None and not client.is_well():
            self.discard(options)
            client = None
        if client is None:
            client = self._clients[key] = Client.connect(options, topic)
        client.follow(topic)
        return client

    def discard(self, options: SourceOptions) -> None:
        """Close a client after an error, so that the next attempt begins anew."""
        client = self._clients.pop(self._key(options), None)
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close what this process opened."""
        for key in [key for key in self._clients if key[0] == os.getpid()]:
            self._clients.pop(key).close()

    @staticmethod
    def _key(options: SourceOptions) -> Key:
        """Batches and streams without a name of their own share connections, under the name of the first.

        A client whose loop runs on the calling thread cannot be used where that thread runs another one.
        """
        own_name = "" if options.client_prefix in CLIENT_PREFIXES.values() else options.client_prefix
        return os.getpid(), loop_runs_here(), own_name, options.kafka.fingerprint()


clients: Final = ClientCache()
atexit.register(clients.close)


def read_range(
    wanted: OffsetRange, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Arrow batches of exactly these columns: every visible record of the range, in order, none twice.

    Raises DeadlineError, DataLossError, CorruptDataError, ConnectError, AuthorizationError, BrokerError.
    """
    if not wanted.size:
        return
    try:
        yield from _read(clients.borrow(options, wanted.topic), wanted, options, columns)
    except KclientError:
        clients.discard(options)
        raise


def _read(
    client: Client, wanted: OffsetRange, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    fetcher = RangeFetcher(client.cluster, client.config, client.runtime, wanted, options)
    batcher = Batcher(columns, options.batch_rows, options.batch_bytes)
    try:
        while (piece := client.run(fetcher.next())) is not None:
            batches = batcher.batches(fetcher.reader(piece), fetcher.end)
            del piece  # with its frame, of which the reader has a copy
            for batch in batches:
                yield batch
                client.run(fetcher.go_on())
            pa.default_memory_pool().release_unused()  # it would keep what the largest piece took.
    finally:
        client.run(fetcher.close())


async def _started(config: Config, runtime: Runtime, topic: str) -> Cluster:
    cluster = Cluster(config, runtime)
    cluster.set_topics([topic])
    await cluster.start()
    return cluster
