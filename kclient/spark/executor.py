"""Read ranges in an executor's Python worker: one cluster per process and configuration, fetches ahead of decoding.

    read_range → ExecutorClients.borrow → RangeFetcher.next → Prefetcher → FetchRequest to the partition's leader
               ← Arrow batches          ← FetchedBatches

Spark reuses workers and sends any partition to any of them, so connections are cached by cluster, never by partition,
and no state of a range outlives it. The event loop runs only while the worker waits for a fetch; what arrives in
between stays in the socket buffer. Does not import pyspark.

A range is fetched from the leader of its partition:

    fetch at the position → drop batches at or after the end → position = offset after the last batch

Control batches, aborted data and compacted offsets move the position like any other, so the end is always reached: no
code waits for a record at `end - 1`, which compaction may have removed. Retriable errors (a new leader, a lost
connection) are retried until nothing has moved for `kafkaConsumer.pollTimeoutMs`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import attrs

from kclient.bridge import Runner, new_runner
from kclient.config import Config
from kclient.errors import CorruptBatchError, DeadlineError, KclientError, UnsupportedFormatError
from kclient.fetch.request import LAST_VERSION_BY_NAME, build_request
from kclient.fetch.session import FINAL_EPOCH, INVALID_SESSION_ID, FetchRequestData, PartitionFetch
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol.errors import LEADER_NOT_AVAILABLE, NONE, OFFSET_OUT_OF_RANGE
from kclient.records.batch import batch_headers
from kclient.records.reader import PartitionReader
from kclient.runtime import Runtime, running_loop
from kclient.spark.arrow_batches import Batcher
from kclient.spark.cluster_lookup import ClusterLookup
from kclient.spark.options import CLIENT_PREFIXES, SourceOptions
from kclient.spark.ranges import OffsetRange, report, within_log
from kclient.types import IsolationLevel

if TYPE_CHECKING:
    import pyarrow as pa

    from kclient.generated.fetch_response import AbortedTransaction, FetchResponse, PartitionData

T = TypeVar("T")
Key: TypeAlias = tuple[int, bool, str, str]

CLOSE_SECONDS: Final = 1.0
PASSES_TO_SEE_EOF: Final = 2  # one pass of the loop reads EOF, the next runs connection_lost


@attrs.define(eq=False)
class ExecutorClient:
    """A cluster and the event loop on which it runs."""

    config: Config
    runtime: Runtime
    runner: Runner
    cluster: Cluster
    topics: list[str]

    @classmethod
    def connect(cls, options: SourceOptions, topic: str) -> ExecutorClient:
        """Find the cluster. Raises ConnectError."""
        config, runtime = options.config("executor"), Runtime()
        runner = new_runner()
        try:
            cluster = runner.run(_started(config, runtime, topic))
        except BaseException:
            runner.close()
            raise
        return cls(config, runtime, runner, cluster, [topic])

    def add_topic(self, topic: str) -> None:
        """Keep the metadata of one more topic."""
        if topic not in self.topics:
            self.topics.append(topic)
            self.run(self._load_metadata(topic))

    async def _load_metadata(self, topic: str) -> None:
        self.cluster.set_topics(self.topics)
        timeout = self.config.default_api_timeout_ms / 1000
        await self.cluster.describe_topics([topic], allow_auto_create=False, timeout=timeout)

    def is_usable(self) -> bool:
        """Return whether the client can be used, after processing what closed while the loop was stopped."""
        self.run(self._process_closed_connections())
        return not self.cluster.all_unreachable

    async def _process_closed_connections(self) -> None:
        # Between two tasks the loop does not run, so a connection that a broker closed meanwhile still looks open.
        for _ in range(PASSES_TO_SEE_EOF):
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


class ExecutorClients:
    """The clients of this process. A forked process starts with none: its parent's connections are not its own."""

    def __init__(self) -> None:
        self._clients: dict[Key, ExecutorClient] = {}

    def borrow(self, options: SourceOptions, topic: str) -> ExecutorClient:
        """Return the client for these options. Connect on first use, and again if no broker could be reached."""
        key = self._key(options)
        client = self._clients.get(key)
        if client is not None and not client.is_usable():
            self.discard(options)
            client = None
        if client is None:
            client = self._clients[key] = ExecutorClient.connect(options, topic)
        client.add_topic(topic)
        return client

    def discard(self, options: SourceOptions) -> None:
        """Close a client after an error, so that the next attempt connects again."""
        client = self._clients.pop(self._key(options), None)
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close what this process opened."""
        for key in [key for key in self._clients if key[0] == os.getpid()]:
            self._clients.pop(key).close()

    @staticmethod
    def _key(options: SourceOptions) -> Key:
        """Return the key under which a client is shared.

        Batches and streams without a name of their own share connections, under the name of the first.

        A client whose loop runs on the calling thread cannot be used where that thread runs another one.
        """
        own_name = "" if options.client_prefix in CLIENT_PREFIXES.values() else options.client_prefix
        return os.getpid(), running_loop() is not None, own_name, options.kafka.fingerprint()


clients: Final = ExecutorClients()
atexit.register(clients.close)


def read_range(
    wanted: OffsetRange, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches of exactly these columns: every visible record of the range, in order, none twice.

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
    client: ExecutorClient, wanted: OffsetRange, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    fetcher = RangeFetcher(client.cluster, client.config, client.runtime, wanted, options)
    batcher = Batcher(columns, options.batch_rows, options.batch_bytes)
    try:
        while (fetched := client.run(fetcher.next())) is not None:
            batches = batcher.batches(fetcher.reader(fetched), fetcher.end)
            del fetched  # free the response frame: the reader has its own copy
            for batch in batches:
                yield batch
                client.run(fetcher.run_ready_io())
            pa.default_memory_pool().release_unused()  # the pool would keep the memory of the largest response
    finally:
        client.run(fetcher.close())


async def _started(config: Config, runtime: Runtime, topic: str) -> Cluster:
    cluster = Cluster(config, runtime)
    cluster.set_topics([topic])
    await cluster.start()
    return cluster


# --- fetching one range ----------------------------------------------------------------------------------------------


log: Final = get_logger("kclient.spark")

FIRST_VERSION_WITH_ISOLATION: Final = 4


class RangeFetcher:
    """Fetches one range, in order: each `await next()` returns the batches of one response."""

    def __init__(
        self, cluster: Cluster, config: Config, runtime: Runtime, wanted: OffsetRange, options: SourceOptions
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._runtime = runtime
        self._wanted = wanted
        self._options = options
        self._position = wanted.start  # after the last batch that `next` returned
        self._end = wanted.end
        self._replica: int | None = None
        self._failure: KclientError | None = None
        self._prefetcher = Prefetcher(self._fetch, wanted.start, options.read_ahead)

    @property
    def end(self) -> int:
        """The offset where reading stops: the planned end, or an earlier one if the log is shorter and may be."""
        return self._end

    async def next(self) -> FetchedBatches | None:
        """Return the next batches, None at the end of the range.

        Raises DeadlineError if the position does not move within `kafkaConsumer.pollTimeoutMs`, DataLossError, and
        every error that is not retriable. Only the time spent here counts, not the time that the caller takes to
        process earlier batches.

        Raises DeadlineError when nothing moved, DataLossError, and whatever no retry heals. Only waiting here counts: a
        slow consumer of what came before is not a slow broker.
        """
        try:
            async with asyncio.timeout(self._options.poll_timeout_ms / 1000):
                fetched = await self._prefetcher.next()
        except TimeoutError as exc:
            if isinstance(exc, KclientError):
                raise
            raise self._no_progress() from self._failure
        if fetched is not None:
            self._position = self._end if fetched.next_offset is None else fetched.next_offset
        return fetched

    def reader(self, fetched: FetchedBatches) -> PartitionReader:
        """Return the reader that decodes fetched batches with the options of this range."""
        return PartitionReader(
            self._wanted.topic,
            self._wanted.partition,
            fetched.data,
            fetched.position,
            isolation_level=self._config.isolation,
            aborted_transactions=fetched.aborted,
            check_crcs=self._config.check_crcs,
            max_decompressed_batch_bytes=self._config.max_decompressed_batch_bytes,
            max_headers_per_record=self._config.max_headers_per_record,
        )

    async def run_ready_io(self) -> None:
        """Read what has arrived and send the next requests, without waiting: for use between two Arrow batches."""
        await self._prefetcher.run_ready_io()

    async def close(self) -> None:
        """Cancel the fetch in flight."""
        await self._prefetcher.close()

    async def _fetch(self, position: int) -> FetchedBatches | None:
        """Fetch until there are batches, or nothing is left before the end. `next` and `close` bound the time."""
        backoff = Backoff.for_retries(self._config, self._runtime)
        while position < self._end:
            try:
                response = await self._fetch_once(position)
            except KclientError as exc:
                if not exc.retriable:
                    raise
                self._failure, self._replica, response = exc, None, position
                log.info("%s at %d: will fetch again: %s", self._wanted.tp, position, exc)
                self._cluster.request_update(f"a fetch of {self._wanted.tp} failed", reset_backoff=False)
            if isinstance(response, FetchedBatches):
                return response
            if response == position:
                await asyncio.sleep(backoff.next())
            position = response
        return None

    async def _fetch_once(self, position: int) -> FetchedBatches | int:
        """Send one FetchRequest and return its batches, or the position to fetch at next."""
        tp, metadata = self._wanted.tp, self._cluster.metadata
        leader = metadata.leader(tp)
        if leader.node_id is None:
            raise broker_error(LEADER_NOT_AVAILABLE, f"Fetching {tp} at {position}", topic=tp.topic)
        topic_id = metadata.topic_id(tp.topic)
        # The topic was recreated since the plan, or this worker's metadata is older than the plan.
        if self._wanted.topic_id is not None and topic_id not in (None, self._wanted.topic_id):
            return await self._refresh_bounds(position)
        committed = self._config.isolation is IsolationLevel.READ_COMMITTED
        wanted = PartitionFetch(tp, position, leader.epoch, topic_id, position_version=0)
        # This session id and epoch mean a Fetch without a session: the next task may read another partition.
        data = FetchRequestData(INVALID_SESSION_ID, FINAL_EPOCH, (wanted,))
        response = await self._cluster.request(
            leader.node_id if self._replica is None else self._replica,
            build_request(data, self._config.fetch_max_bytes, self._config),
            min_version=FIRST_VERSION_WITH_ISOLATION if committed else 0,
            max_version=LAST_VERSION_BY_NAME if topic_id is None else None,  # 13 and later need ids (KIP-516)
        )
        return await self._handle_response(position, cast("FetchResponse", response))

    async def _handle_response(self, position: int, response: FetchResponse) -> FetchedBatches | int:
        partitions = [partition for topic in response.responses for partition in topic.partitions]
        code = response.error_code or (partitions[0].error_code if partitions else NONE)
        if code != NONE and self._replica is not None:
            self._replica = None  # a follower may lag; ask the leader (KIP-392)
            return position
        if code == OFFSET_OUT_OF_RANGE:
            return await self._refresh_bounds(position)
        if code != NONE:
            raise broker_error(code, f"Fetching {self._wanted.tp} at {position}", topic=self._wanted.topic)
        if not partitions:
            return position
        if partitions[0].preferred_read_replica >= 0:  # the leader names a follower in this rack (KIP-392)
            self._replica = partitions[0].preferred_read_replica
        data = memoryview(partitions[0].records or b"")
        return self._trim(position, data, partitions[0]) if data else position

    def _trim(self, position: int, data: memoryview, partition: PartitionData) -> FetchedBatches:
        """Drop the batches at or after the end. Wrappers of formats 0 and 1 do not contain their base offset."""
        next_offset = position
        known: int | None = position
        try:
            # Brokers return whole batches, so the last one may start at or after the end: a batch of offsets 90–109
            # is kept for the end 100 (the reader cuts it), one that starts at 110 is dropped.
            for batch in batch_headers(data):
                if batch.magic == 2 and batch.base_offset >= self._end:
                    next_offset = max(next_offset, self._end)
                    data = data[: batch.start]
                    break
                next_offset = max(next_offset, batch.next_offset)
            known = next_offset
        except (CorruptBatchError, UnsupportedFormatError):
            known = None  # decoding raises the error, with all coordinates
        if known == position:  # not even one whole batch: decoding says that the fetch is too small
            known = None
        return FetchedBatches(position, data, known, partition.aborted_transactions or ())

    async def _refresh_bounds(self, position: int) -> int:
        """Look up the log bounds after OFFSET_OUT_OF_RANGE or a new topic id, and return the next position to read.

        The metadata of a reused worker may be older than the plan, so the topic is described again first.
        """
        timeout = self._config.default_api_timeout_ms / 1000
        await self._cluster.describe_topics([self._wanted.topic], allow_auto_create=False, timeout=timeout)
        lookup = ClusterLookup(self._cluster, self._config, self._runtime)
        bounds = await lookup.log_bounds([self._wanted.tp])
        rest = attrs.evolve(self._wanted, start=position, end=self._end)
        readable, losses = within_log(rest, bounds[self._wanted.tp])
        report(losses, fail=self._options.fail_on_data_loss, fatal=self._options.fatal_losses)
        self._end = position if readable is None else readable.end
        self._wanted = attrs.evolve(self._wanted, topic_id=bounds[self._wanted.tp].topic_id)
        return position if readable is None else readable.start

    def _no_progress(self) -> DeadlineError:
        tp, position, timeout = self._wanted.tp, self._position, self._options.poll_timeout_ms / 1000
        leader = self._cluster.metadata.leader(tp).node_id
        cause = (
            f"The last error was: {self._failure.text}"
            if self._failure
            else "The broker answers without records."
        )
        return DeadlineError(
            f"{tp}: nothing came for {timeout:g} s at offset {position} of a range that ends at {self._end} "
            f"(leader {leader}). {cause} Look at the broker, or raise the option kafkaConsumer.pollTimeoutMs.",
            waiting_for=f"records of {tp} at {position}",
            timeout=timeout,
        )


# --- fetching ahead of decoding --------------------------------------------------------------------------------------


MAX_LOOP_PASSES: Final = 4
"""How many passes of the loop a response needs: read it, finish its request, start the next task, send its request."""


@attrs.frozen
class FetchedBatches:
    """Batches from `position` on, in the frame that they came with; the last may be cut off.

    `next_offset` follows the last complete batch; None if the batches are damaged. The repr omits the bytes: asyncio
    builds the repr of every task result for its signal handler, and formatting megabytes costs more than reading them.
    """

    position: int
    data: memoryview = attrs.field(repr=False)
    next_offset: int | None
    aborted: Sequence[AbortedTransaction] = attrs.field(repr=False)


Fetch: TypeAlias = Callable[[int], Coroutine[Any, Any, FetchedBatches | None]]
"""Fetches the batches at a position; None if there are none before the end."""


class Prefetcher:
    """Fetches from `position` on, up to `read_ahead` requests ahead of the caller."""

    def __init__(self, fetch: Fetch, position: int, read_ahead: int) -> None:
        self._fetch = fetch
        self._position = position
        self._read_ahead = read_ahead
        self._tasks: deque[asyncio.Task[FetchedBatches | None]] = deque()

    async def next(self) -> FetchedBatches | None:
        """Return the next batches, None at the end. Raise what `fetch` raises; cancelling cancels the request."""
        task = self._tasks.popleft() if self._tasks else asyncio.create_task(self._fetch(self._position))
        fetched = await task
        if fetched is None or fetched.next_offset is None:
            return fetched
        self._position = fetched.next_offset
        # Each task starts at the position after the one before it, so the requests run one after the other; a chain
        # of two keeps one response ready and the next request in flight while the caller decodes.
        while len(self._tasks) < self._read_ahead:
            last = self._tasks[-1] if self._tasks else task
            self._tasks.append(asyncio.create_task(self._fetch_after(last)))
        await self.run_ready_io()
        return fetched

    async def run_ready_io(self) -> None:
        """Run the event loop without waiting: read an arrived response, and send the next request.

        asyncio has no call for "run until idle". One `sleep(0)` is one pass (poll the sockets, run the ready
        callbacks). MAX_LOOP_PASSES is the longest chain of callbacks from an arrived response to the next request.
        """
        for _ in range(MAX_LOOP_PASSES):
            if not self._tasks or self._tasks[-1].done():
                return  # everything that may be fetched ahead has arrived
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Cancel the request in flight and those queued after it."""
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            with suppress(asyncio.CancelledError, KclientError):
                await self._tasks.popleft()

    async def _fetch_after(self, before: asyncio.Task[FetchedBatches | None]) -> FetchedBatches | None:
        fetched = await before
        position = None if fetched is None else fetched.next_offset
        del before, fetched  # or their frame stays in memory until the next response
        return None if position is None else await self._fetch(position)
