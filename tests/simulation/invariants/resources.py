"""What a consumer keeps in memory."""

from __future__ import annotations

from typing import Final

from tests.simulation.application import Member
from tests.simulation.watch import Invariant

RECORD_OVERHEAD: Final = 40
ANSWER_OVERHEAD: Final = 200  # for each partition of a response
MOST_IN_A_BATCH: Final = 20


class Bounded(Invariant):
    """What is buffered fits into `buffer_memory_bytes`.

    A broker sends the first batch whatever its size, so each response in flight may add one more, and what frames hold
    beside the records comes on top.
    """

    id = "I-32"

    def poll_began(self, member: Member, timeout: float) -> None:
        self._look(member)

    def poll_ended(self, member: Member, count: int) -> None:
        self._look(member)

    def _look(self, member: Member) -> None:
        scenario, consumer = self.stage.scenario, member.consumer
        if consumer is None or consumer.closed:
            return
        # What buffered-bytes says; all metrics would cost more than the run.
        used = consumer._core.buffer.bytes_used
        if used > scenario.buffer_memory_bytes:
            batch = MOST_IN_A_BATCH * (scenario.record_bytes + RECORD_OVERHEAD)
            frame = batch + ANSWER_OVERHEAD * len(self.stage.partitions())
            if used > scenario.buffer_memory_bytes + scenario.brokers * frame:
                self.broken(f"{member} buffers {used} bytes of {scenario.buffer_memory_bytes}")


ALL = [Bounded]
