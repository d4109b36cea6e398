"""What an application knows of a partition that is its own: where it stands, and how it came there.

A holding lasts from on_partitions_assigned to the end of on_partitions_revoked or on_partitions_lost. An `era`
of it ends where the application seeks, or the client says that the position could not be kept.
"""

from __future__ import annotations

from typing import Any

import attrs

from kclient.records.records import Record
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.ledger import Row


@attrs.define(eq=False)
class Holding:
    """`committed` is what the group had stored when it began. `next` is the lowest offset that may come next: behind
    what was delivered last, or where a seek or the client went; None while only the commit says.

    `last` is what was delivered last in this era; `epoch` that of the last record there was, None after a seek.
    """

    tp: TopicPartition
    since: float
    committed: OffsetAndMetadata | None = None
    next: int | None = None
    last: Row | None = None
    epoch: int | None = None
    paused: bool = False
    begun: bool = False  # something was delivered, or the application chose where to begin
    free: bool = False  # the next record may lie anywhere: the reset policy decides
    went_back: bool = False  # the log was cut, and the client alone knows the epoch of what is before `next`
    era: object = attrs.field(factory=object)
    passed_over_since: int | None = None  # the member's turn when its records were first seen to wait

    @property
    def place(self) -> OffsetAndMetadata | None:
        """Where to go on, None before anything was delivered, or was after the log was cut."""
        return None if self.next is None or self.went_back else OffsetAndMetadata(self.next, self.epoch)

    def took(self, record: Record[Any, Any], row: Row | None) -> None:
        """A record was delivered."""
        self.next = record.offset + 1
        self.last = row
        self.epoch = record.leader_epoch
        self.begun, self.free, self.went_back = True, False, False
        if row is not None:
            row.holder = self.era

    def goes_to(self, offset: int | None) -> None:
        """It goes on there; None: wherever the log begins."""
        self.next = offset
        self.last = self.epoch = None
        self.begun, self.free, self.went_back = True, offset is None, False
        self.era = object()

    def goes_back(self, to: int) -> None:
        """The client found that the log ends there for all it knows; no era ends, for what comes is new."""
        self.next = to
        self.last = self.epoch = None
        self.begun = self.went_back = True
