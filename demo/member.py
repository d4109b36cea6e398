"""One member of the group, as a child process. It writes its events to standard output, one JSON object per line.

    {"assigned": [0, 1, 2]}
    {"consumed": [[0, 100, 600], [1, 0, 250]]}        # partition, first offset, offset after the last
    {"committed": {"0": 600, "1": 250}}

Records are reported as consumed before they are committed, so a member that is killed in between has reported more than
it committed: its successor delivers these once more, and the demo counts them once. SIGTERM ends it cleanly.

A line on standard input allows the member to read each partition up to an offset, and the next line further:

    {"read_to": [500, 500, 480]}

A partition that has reached its offset is paused, and all are before the first line. So no member is done before the
other has begun, nor before one of them is killed, however late the demo sees how far they are.
"""

from __future__ import annotations

import argparse
import json
import select
import signal
import sys
import time
from types import FrameType
from typing import Any

from demo.measures import ranges
from kclient import Consumer, TopicPartition
from kclient.errors import CommitFailedError


class Reporter:
    """A rebalance listener that reports the member's assignment."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._member.own(partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        report(assigned=[])

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        report(assigned=[])


class Member:
    """Polls, reports and commits until SIGTERM."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._read_to: list[int] = []
        self._stopping = False

    def stop(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGTERM."""
        self._stopping = True

    def own(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Report committed offsets of new partitions: a commit whose response was lost may have been stored."""
        stored = self._consumer.committed(partitions)
        committed = {tp: position.offset for tp, position in stored.items() if position is not None}
        report(committed={tp.partition: offset for tp, offset in committed.items()})
        self._pause_read({tp: committed.get(tp, 0) for tp in partitions})
        report(assigned=sorted(tp.partition for tp in self._consumer.assignment()))

    def _pause_read(self, offsets: dict[TopicPartition, int]) -> None:
        """Pause the partitions that have reached the offset up to which this member may read."""
        self._consumer.pause(
            tp for tp, offset in offsets.items() if not self._read_to or offset >= self._read_to[tp.partition]
        )

    def _update_limits(self) -> None:
        while select.select([sys.stdin], [], [], 0)[0] and (line := sys.stdin.buffer.readline()):
            self._read_to = json.loads(line)["read_to"]
            self._consumer.resume(self._consumer.assignment())

    def run(self) -> None:
        """Read until SIGTERM; an idle poll writes an event too, so a member whose parent died ends."""
        while not self._stopping:
            self._update_limits()
            records = self._consumer.poll(timeout=0.2)
            consumed = [
                [tp.partition, start, end]
                for tp in records.partitions()
                for start, end in ranges(record.offset for record in records.of(tp))
            ]
            report(consumed=consumed, at=time.time())
            if consumed:
                offsets = records.next_offsets()
                self._pause_read({tp: position.offset for tp, position in offsets.items()})
                self._commit(offsets)

    def _commit(self, offsets: dict[TopicPartition, Any]) -> None:
        try:
            self._consumer.commit(offsets)
        except CommitFailedError as exc:  # the partitions moved; their new owner reads these records again
            report(refused=exc.reason)
        else:
            committed = {tp.partition: position.offset for tp, position in offsets.items()}
            report(committed=committed, at=time.time())


def report(**event: Any) -> None:
    """Write one line to the parent. Raise BrokenPipeError if it has ended."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Join the group and read."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.member", description="One member of the demo's group."
    )
    for name in ("--bootstrap-servers", "--topic", "--group"):
        parser.add_argument(name, required=True)
    parser.add_argument("--session-timeout-ms", type=int, default=3000)
    parser.add_argument("--max-poll-records", type=int, default=1000)
    arguments = parser.parse_args()
    consumer = Consumer(
        bootstrap_servers=arguments.bootstrap_servers,
        group_id=arguments.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=arguments.session_timeout_ms,
        heartbeat_interval_ms=arguments.session_timeout_ms // 6,
        max_poll_records=arguments.max_poll_records,
    )
    with consumer:
        member = Member(consumer)
        signal.signal(signal.SIGTERM, member.stop)
        consumer.subscribe([arguments.topic], listener=Reporter(member))
        member.run()


if __name__ == "__main__":
    main()
