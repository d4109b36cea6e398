"""Records of the next polls of `for record in consumer`, delivered together with those of one poll.

The steps of a poll, and the change of threads of a sync consumer, cost more than decoding 500 records. So one poll for
iteration decodes the records of several on the loop (`read`), for READ_AHEAD_SECONDS at most, without an await. It
decodes AT_ONCE records together, because each decode has a fixed cost too, and divides them into polls. The next ones
are handed out (`hand_out`) without the steps before the records (`poll.py`, 1 to 8) as long as nothing is due for them,
those of a sync consumer on the user's thread:

    no change          every background task that has work or an error for a poll notifies `changed`; buffered data do
                       so too, and are not counted here
    no timer           the automatic commit and the check for missing topics; for the poll timer of the group, a poll
                       takes the usual way after READ_AHEAD_VALID seconds
    no wakeup()        it ends the validity at once

Only the thread that is inside the consumer hands out, and what is on the loop returns or drops these records only in a
call of that thread, so they need no lock. An async consumer hands out on its loop, unless a task is inside a poll.

There is no reading ahead with deserializers or interceptors, which run once for each poll, and none past an error. A
call of poll() does not read ahead: what it does not return stays in the buffer, so that a partition can be paused after
each poll without being fetched again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.delivery import RecordDelivery
from kclient.metrics.calls import CallMetrics
from kclient.records.reader import Chunk
from kclient.records.records import Records
from kclient.runtime import Runtime

READ_AHEAD_SECONDS: Final = 0.004  # of decoding, while other tasks of the loop wait
READ_AHEAD_RECORDS: Final = 10_000
AT_ONCE: Final = 2_000
READ_AHEAD_BYTES: Final = 4 * 1024 * 1024  # beyond buffer_memory_bytes: the buffer has handed these out
READ_AHEAD_VALID: Final = 0.1


class ReadAhead:
    """The records of the next polls, and whether these may take them without the steps before."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        delivery: RecordDelivery,
        assigned: AssignedPartitions,
        due_times: Callable[[float], list[float]],
        changed: ChangeSignal,
        buffer: FetchBuffer,
        metrics: CallMetrics,
    ) -> None:
        self._runtime = runtime
        self._delivery = delivery
        self._assigned = assigned
        self._due_times = due_times
        self._changed = changed
        self._buffer = buffer
        self._metrics = metrics
        self._bytes = min(READ_AHEAD_BYTES, config.buffer_memory_bytes // 8)
        user_code = config.interceptors or config.key_deserializer or config.value_deserializer
        self.allowed: Final = not user_code and config.on_decode_error != "keep"
        self._valid_until = 0.0
        self._changes_seen = 0

    def read(self, max_records: int) -> None:
        """Deliver the records of the next polls after those just delivered. Stop before whatever may raise."""
        ahead = self._assigned.delivered.ahead
        until = self._runtime.now() + READ_AHEAD_SECONDS
        most = READ_AHEAD_RECORDS - len(self._assigned.delivered.records)
        try:
            while (left := most - ahead.count) >= max_records and ahead.size_bytes < self._bytes:
                records = self._decode(min(left, max(AT_ONCE, max_records)), until)
                if records is None:
                    break
                for poll in divided(records, max_records):
                    ahead.add(poll)
        except BaseException:
            self._assigned.return_all()
            raise
        self._begin_validity()

    def _decode(self, max_records: int, until: float) -> Records[Any, Any] | None:
        """Return so many records, or those that are decoded at the time `until`; None if there are none."""
        if self._runtime.now() >= until:
            return None
        task = self._delivery.begin(max_records, ahead=True, max_unpacked_bytes=self._bytes)
        if task is None:
            return None
        task.decode(max(0.0, until - self._runtime.now()))
        records = self._delivery.finish(task)
        return records if len(records) else None

    def hand_out_first(self) -> Records[Any, Any]:
        """Hand out the first of the records, after the steps of a poll."""
        assigned = self._assigned
        assigned.delivered = assigned.delivered.following()
        self._begin_validity()
        return assigned.delivered.records

    # --- without the steps

    def note_changes(self) -> None:
        """Note that a poll runs the steps now: what changes during them makes the next poll run them again.

        A poll that ends before all steps have run begins no validity.
        """
        self._changes_seen = self._changes()
        self._valid_until = 0.0

    def end_validity(self) -> None:
        """Have the next poll run the steps. Any thread may call this."""
        self._valid_until = 0.0

    def hand_out(self, now: float) -> bool:
        """Hand out records without the steps of a poll. Return False if there are none, or if a step may be due.

        Called on the user's thread, which must be inside the consumer, with the loop's time.
        """
        last = self._assigned.delivered
        polls = last.ahead.polls
        if not polls or not last.all_handed_out:
            return False
        following = last.following()
        if self._changes() != self._changes_seen or now >= self._valid_until:
            return False
        # A signal handler that has polled, or moved a position, since the first line has replaced one of the two. These
        # lines call nothing, so that no handler runs between the comparison and the store.
        if self._assigned.delivered is not last or last.ahead.polls is not polls:
            return False
        self._assigned.delivered = following
        self._metrics.polled(now)
        return True

    def _begin_validity(self) -> None:
        now = self._runtime.now()
        self._valid_until = min(now + READ_AHEAD_VALID, *self._due_times(now))

    def _changes(self) -> int:
        """Return how much has changed for a poll, buffered data not counted."""
        return self._changed.count - self._buffer.changed.count


def divided(records: Records[Any, Any], max_records: int) -> Iterator[Records[Any, Any]]:
    """Divide records into those of polls of at most `max_records`, between two batches where that is possible.

    For example batches of 300, 150 and 900 records, and polls of 500: 450, 500, 400.
    """
    chunks: list[Chunk] = []
    count = 0
    for chunk in records.chunks:
        for part in chunk.divided(max_records):
            if count + len(part) > max_records:
                yield Records(chunks)
                chunks, count = [], 0
            chunks.append(part)
            count += len(part)
    if count:
        yield Records(chunks)
