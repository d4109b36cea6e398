"""One member of the group, a process of its own. What happens to it goes to standard output, one JSON object a line.

    {"assigned": [0, 1, 2]}
    {"consumed": [[0, 100, 600], [1, 0, 250]]}        # partition, first offset, offset behind the last
    {"committed": {"0": 600, "1": 250}}

Records are told as consumed before they are committed, so that a member which is killed in between has told more than
it committed: its successor delivers these once more, and the demo counts them once. What it owns is paused until a line
comes through standard input, so that no member is done before the other has begun. SIGTERM ends it cleanly.
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
        self._started = False
        self._stopping = False

    def stop(self, signum: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM."""
        self._stopping = True

    def own(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Partitions were assigned. Tell where they go on: a commit whose answer was lost may have been stored."""
        if not self._started:
            self._consumer.pause(partitions)
        stored = self._consumer.committed(partitions)
        tell(
            committed={
                tp.partition: position.offset for tp, position in stored.items() if position is not None
            }
        )
        tell(assigned=sorted(tp.partition for tp in self._consumer.assignment()))

    def _start_when_told(self) -> None:
        if not self._started and select.select([sys.stdin], [], [], 0)[0]:
            sys.stdin.readline()
            self._started = True
            self._consumer.resume(self._consumer.assignment())

    def run(self) -> None:
        """Read until told to stop; an idle poll tells an empty line, so that a member without its parent ends."""
        while not self._stopping:
            self._start_when_told()
            records = self._consumer.poll(timeout=0.2)
            consumed = [
                [tp.partition, start, end]
                for tp in records.partitions()
                for start, end in ranges(record.offset for record in records.of(tp))
            ]
            tell(consumed=consumed, at=time.time())
            if consumed:
                self._commit(records.next_offsets())

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
    arguments = parser.parse_args()
    consumer = Consumer(
        bootstrap_servers=arguments.bootstrap_servers,
        group_id=arguments.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=arguments.session_timeout_ms,
        heartbeat_interval_ms=arguments.session_timeout_ms // 6,
        max_poll_records=1000,
    )
    with consumer:
        member = Member(consumer)
        signal.signal(signal.SIGTERM, member.stop)
        consumer.subscribe([arguments.topic], listener=Reporter(member))
        member.run()


if __name__ == "__main__":
    main()
