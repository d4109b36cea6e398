"""Fetching one range of offsets from its partition's leader, a few fetches ahead of what is decoded (`ahead`).

    fetch at the position → cut off what lies at or behind the end → the position is the offset behind the last batch

Control batches, aborted data and compacted records move the position like any other, so the end is always reached:
nobody waits for a record at `end - 1`, which may not exist any more. Whatever heals by itself (a new leader, a lost
connection) is tried again until nothing moved for `kafkaConsumer.pollTimeoutMs`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

import attrs

from kclient.config import Config
from kclient.errors import CorruptBatchError, DeadlineError, KclientError, UnsupportedFormatError
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol.errors import LEADER_NOT_AVAILABLE, NONE, OFFSET_OUT_OF_RANGE
from kclient.records.batch import batch_headers
from kclient.records.reader import PartitionReader
from kclient.runtime import Runtime
from kclient.spark.ahead import Piece, ReadAhead
from kclient.spark.lookup import ISOLATION_LEVELS, Lookup
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange, report, within_log
from kclient.types import IsolationLevel

if TYPE_CHECKING:
    from kclient.generated.fetch_response import FetchResponse, PartitionData
    from kclient.network.cluster import Cluster

log = get_logger("kclient.spark")

LAST_VERSION_WITH_NAMES: Final = 12
FIRST_VERSION_WITH_ISOLATION: Final = 4


class RangeFetcher:
    """The pieces of one range, in order, each asked for with `await next()`."""

    def __init__(
        self, cluster: Cluster, config: Config, runtime: Runtime, wanted: OffsetRange, options: SourceOptions
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._runtime = runtime
        self._wanted = wanted
        self._options = options
        self._position = wanted.start  # behind what was handed out
        self._end = wanted.end
        self._replica: int | None = None
        self._failure: KclientError | None = None
        self._pieces = ReadAhead(self._fetch, wanted.start, options.read_ahead)

    @property
    def end(self) -> int:
        """Where reading stops: the planned end, or an earlier one where the log is shorter and that is allowed."""
        return self._end

    async def next(self) -> Piece | None:
        """The next piece, None when the end is reached.

        Raises DeadlineError when nothing moved, DataLossError, and whatever no retry heals. Only waiting here counts: a
        slow consumer of what came before is not a slow broker.
        """
        try:
            async with asyncio.timeout(self._options.poll_timeout_ms / 1000):
                piece = await self._pieces.next()
        except TimeoutError as exc:
            if isinstance(exc, KclientError):
                raise
            raise self._no_progress() from self._failure
        if piece is not None:
            self._position = self._end if piece.next_offset is None else piece.next_offset
        return piece

    def reader(self, piece: Piece) -> PartitionReader:
        """What decodes a piece, as the options say."""
        return PartitionReader(
            self._wanted.topic,
            self._wanted.partition,
            piece.data,
            piece.position,
            isolation_level=self._isolation,
            aborted_transactions=piece.aborted,
            check_crcs=self._config.check_crcs,
            max_decompressed_batch_bytes=self._config.max_decompressed_batch_bytes,
            max_headers_per_record=self._config.max_headers_per_record,
        )

    async def go_on(self) -> None:
        """Between two batches: read what has arrived, ask for more. Waits for nothing."""
        await self._pieces.go_on()

    async def close(self) -> None:
        """Cancel the fetch in flight."""
        await self._pieces.close()

    async def _fetch(self, position: int) -> Piece | None:
        """Ask until the log gives a piece, or there is nothing before the end. Bounded by `next` and `close`."""
        backoff = Backoff.for_retries(self._config, self._runtime)
        while position < self._end:
            try:
                answer = await self._ask(position)
            except KclientError as exc:
                if not exc.retriable:
                    raise
                self._failure, self._replica, answer = exc, None, position
                log.info("%s at %d: will fetch again: %s", self._wanted.tp, position, exc)
                self._cluster.request_update(f"a fetch of {self._wanted.tp} failed", reset_backoff=False)
            if isinstance(answer, Piece):
                return answer
            if answer == position:
                await asyncio.sleep(backoff.next())
            position = answer
        return None

    async def _ask(self, position: int) -> Piece | int:
        """One request: what it brought, or the position to ask at next."""
        tp, metadata = self._wanted.tp, self._cluster.metadata
        leader = metadata.leader(tp)
        if leader.node_id is None:
            raise broker_error(LEADER_NOT_AVAILABLE, f"Fetching {tp} at {position}", topic=tp.topic)
        topic_id = metadata.topic_id(tp.topic)
        if self._wanted.topic_id is not None and topic_id not in (None, self._wanted.topic_id):
            return await self._look_again(position)
        committed = self._isolation is IsolationLevel.READ_COMMITTED
        answer = await self._cluster.request(
            leader.node_id if self._replica is None else self._replica,
            self._request(position, topic_id, leader.epoch),
            min_version=FIRST_VERSION_WITH_ISOLATION if committed else 0,
            max_version=LAST_VERSION_WITH_NAMES if topic_id is None else None,
        )
        return await self._read(position, cast("FetchResponse", answer))

    @property
    def _isolation(self) -> IsolationLevel:
        return ISOLATION_LEVELS[self._config.isolation_level]

    def _request(self, position: int, topic_id: bytes | None, epoch: int | None) -> FetchRequest:
        partition = FetchPartition(
            partition=self._wanted.partition,
            fetch_offset=position,
            partition_max_bytes=self._config.max_partition_fetch_bytes,
        )
        partition.current_leader_epoch = -1 if epoch is None else epoch
        topic = FetchTopic(topic=self._wanted.topic, partitions=[partition])
        if topic_id is not None:
            topic.topic_id = topic_id
        return FetchRequest(
            max_wait_ms=self._config.fetch_max_wait_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_max_bytes,
            isolation_level=self._isolation,
            topics=[topic],
            rack_id=self._config.client_rack,
        )

    async def _read(self, position: int, answer: FetchResponse) -> Piece | int:
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        code = answer.error_code or (partitions[0].error_code if partitions else NONE)
        if code != NONE and self._replica is not None:
            self._replica = None  # a follower may lag behind; the leader knows
            return position
        if code == OFFSET_OUT_OF_RANGE:
            return await self._look_again(position)
        if code != NONE:
            raise broker_error(code, f"Fetching {self._wanted.tp} at {position}", topic=self._wanted.topic)
        if not partitions:
            return position
        if partitions[0].preferred_read_replica >= 0:
            self._replica = partitions[0].preferred_read_replica
        data = memoryview(partitions[0].records or b"")
        return self._cut(position, data, partitions[0]) if data else position

    def _cut(self, position: int, data: memoryview, partition: PartitionData) -> Piece:
        """Leave out the batches at or behind the end; wrappers of formats 0 and 1 do not tell where they begin."""
        next_offset = position
        known: int | None = position
        try:
            for batch in batch_headers(data):
                if batch.magic == 2 and batch.base_offset >= self._end:
                    next_offset = max(next_offset, self._end)
                    data = data[: batch.start]
                    break
                next_offset = max(next_offset, batch.next_offset)
            known = next_offset
        except (CorruptBatchError, UnsupportedFormatError):
            known = None  # decoding tells it, with all coordinates
        if known == position:  # not even one whole batch: decoding says that the fetch is too small
            known = None
        return Piece(position, data, known, partition.aborted_transactions or ())

    async def _look_again(self, position: int) -> int:
        """The log does not have the position, or it is another log: what can still be read?

        A reused worker may know less than the plan: it asks for the topic anew, so that the id is as new as the bounds.
        """
        timeout = self._config.default_api_timeout_ms / 1000
        await self._cluster.describe_topics([self._wanted.topic], allow_auto_create=False, timeout=timeout)
        lookup = Lookup(self._cluster, self._config, self._runtime)
        bounds = await lookup.log_bounds([self._wanted.tp])
        rest = attrs.evolve(self._wanted, start=position, end=self._end)
        readable, losses = within_log(rest, bounds[self._wanted.tp])
        report(losses, fail=self._options.fail_on_data_loss)
        self._end = position if readable is None else readable.end
        self._wanted = attrs.evolve(self._wanted, topic_id=bounds[self._wanted.tp].topic_id)
        return position if readable is None else readable.start

    def _no_progress(self) -> DeadlineError:
        tp, position, timeout = self._wanted.tp, self._position, self._options.poll_timeout_ms / 1000
        leader = self._cluster.metadata.leader(tp).node_id
        said = (
            f"The last error was: {self._failure.text}"
            if self._failure
            else "The broker answers without records."
        )
        return DeadlineError(
            f"{tp}: nothing came for {timeout:g} s at offset {position} of a range that ends at {self._end} "
            f"(leader {leader}). {said} Look at the broker, or raise the option kafkaConsumer.pollTimeoutMs.",
            waiting_for=f"records of {tp} at {position}",
            timeout=timeout,
        )
