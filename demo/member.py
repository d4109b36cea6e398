"""One member of the group, a process of its own. What happens to it goes to standard output, one JSON object a line.

    {"assigned": [0, 1, 2]}
    {"consumed": [[0, 100, 600], [1, 0, 250]]}        # partition, first offset, offset behind the last
    {"committed": {"0": 600, "1": 250}}

Records are told as consumed before they are committed, so that a member which is killed in between has told more than
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

from demo.tally import ranges
from kclient import Consumer, TopicPartition
from kclient.errors import CommitFailedError


class Reporter:
    """A rebalance listener that tells what the member owns."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._member.own(partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        tell(assigned=[])

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        tell(assigned=[])


class Member:
    """Polls, tells, commits, until SIGTERM."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._read_to: list[int] = []
        self._stopping = False

    def stop(self, signum: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM."""
        self._stopping = True

    def own(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Partitions were assigned. Tell where they go on: a commit whose answer was lost may have been stored."""
        stored = self._consumer.committed(partitions)
        committed = {tp: position.offset for tp, position in stored.items() if position is not None}
        tell(committed={tp.partition: offset for tp, offset in committed.items()})
        self._pause_read({tp: committed.get(tp, 0) for tp in partitions})
        tell(assigned=sorted(tp.partition for tp in self._consumer.assignment()))

    def _pause_read(self, offsets: dict[TopicPartition, int]) -> None:
        """Pause the partitions that have reached the offset up to which this member may read."""
        self._consumer.pause(
            tp for tp, offset in offsets.items() if not self._read_to or offset >= self._read_to[tp.partition]
        )

    def _read_on_when_told(self) -> None:
        while select.select([sys.stdin], [], [], 0)[0] and (line := sys.stdin.buffer.readline()):
            self._read_to = json.loads(line)["read_to"]
            self._consumer.resume(self._consumer.assignment())

    def run(self) -> None:
        """Read until told to stop; an idle poll tells an empty line, so that a member without its parent ends."""
        while not self._stopping:
            self._read_on_when_told()
            records = self._consumer.poll(timeout=0.2)
            consumed = [
                [tp.partition, start, end]
                for tp in records.partitions()
                for start, end in ranges(record.offset for record in records.of(tp))
            ]
            tell(consumed=consumed, at=time.time())
            if consumed:
                offsets = records.next_offsets()
                self._pause_read({tp: position.offset for tp, position in offsets.items()})
                self._commit(offsets)

    def _commit(self, offsets: dict[TopicPartition, Any]) -> None:
        try:
            self._consumer.commit(offsets)
        except (
            CommitFailedError
        ) as exc:  # the partitions moved; whoever owns them now reads these records again
            tell(refused=exc.reason)
        else:
            committed = {tp.partition: position.offset for tp, position in offsets.items()}
            tell(committed=committed, at=time.time())


def tell(**event: Any) -> None:
    """One line to the parent. Raises BrokenPipeError when there is none any more."""
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
