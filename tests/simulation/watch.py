"""The events of a run, passed to the invariants, which report when a promise is broken.

An invariant derives from `Invariant` and overrides the hooks it needs. Hooks are called at the moment something
happens, in the order in which it happens: the applications call the ones above (application.py), the cluster
those below (ledger.py). What a member holds (holding.py) is, inside of a hook, still as it was before the event.
`token_requested` is a call of the application's function, `token_awaited` what a connection that authenticates got.
`jumped` and `went_back` are what the client says of itself when a position cannot be kept: the reset policy took over,
or the log was truncated. `finished` is called once, when the quiet phase is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kclient.embedded.partition import Partition
from kclient.embedded.received_request import ReceivedRequest
from kclient.protocol.message import Message
from kclient.records.records import Record
from kclient.runtime import Address
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from tests.simulation.application import Member
    from tests.simulation.holding import Holding
    from tests.simulation.ledger import Row
    from tests.simulation.stage import Stage

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@attrs.frozen
class Violation:
    """A promise that was broken: which, when (virtual seconds), and what was seen."""

    invariant: str
    at: float
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at:.3f} s: {self.text}"


@attrs.frozen
class Handed:
    """One record that an application was handed. `row` is what the ledger knows of it: None for what was never written.

    `holding` is None where the partition is not the member's.
    """

    member: Member
    record: Record[Any, Any]
    tp: TopicPartition
    row: Row | None
    holding: Holding | None

    def __str__(self) -> str:
        return f"{self.member} was handed {self.tp} offset {self.record.offset}"


class Invariant:
    """One invariant of docs/specification/simulation.md. `stage` holds whatever one may want to look at."""

    id: ClassVar[str] = ""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def broken(self, text: str) -> None:
        """Report; the run goes on, because what follows helps to understand."""
        self.stage.report(Violation(self.id, self.stage.now, text))

    # --- the applications; a member is one incarnation of a process

    def began(self, member: Member) -> None: ...
    def poll_began(self, member: Member, timeout: float) -> None: ...
    def delivered(self, handed: Handed) -> None: ...
    def poll_ended(self, member: Member, count: int) -> None: ...
    def raised(self, member: Member, call: str, error: BaseException) -> None: ...
    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None: ...
    def revoked(self, member: Member, partitions: Iterable[TopicPartition]) -> None: ...
    def revoked_ended(self, member: Member, partitions: Iterable[TopicPartition]) -> None: ...
    def lost(self, member: Member, partitions: Iterable[TopicPartition]) -> None: ...
    def sought(self, member: Member, tp: TopicPartition, offset: int | None) -> None: ...
    def paused(self, member: Member, tp: TopicPartition) -> None: ...
    def resumed(self, member: Member, tp: TopicPartition) -> None: ...
    def commit_began(self, member: Member, offsets: Offsets | None) -> None: ...
    def commit_ended(self, member: Member, offsets: Offsets | None, error: BaseException | None) -> None: ...
    def position(self, member: Member, tp: TopicPartition, offset: int) -> None: ...
    def unsubscribed(self, member: Member) -> None: ...
    def jumped(self, member: Member, tp: TopicPartition, lost: int, to: int) -> None: ...
    def went_back(self, member: Member, tp: TopicPartition, start: int, to: int) -> None: ...
    def logged(self, member: Member, record: logging.LogRecord) -> None: ...
    def connecting(self, member: Member, address: Address) -> None: ...
    def asking(self, request: Message) -> None: ...
    def exchanged(self, request: Message, response: Message) -> None: ...
    def handler_began(self, member: Member, tp: TopicPartition, row: Row) -> None: ...
    def handler_ended(self, member: Member, tp: TopicPartition, row: Row) -> None: ...
    def token_requested(self, member: Member) -> None: ...
    def token_request_ended(self, member: Member) -> None: ...
    def token_awaited(self, member: Member, began: float, error: BaseException | None) -> None: ...
    def close_began(self, member: Member, timeout: float) -> None: ...
    def close_ended(self, member: Member, seconds: float, error: BaseException | None) -> None: ...
    def died(self, member: Member) -> None: ...

    # --- the cluster

    def accepted(self, group_id: str, member_id: str, generation: int, offsets: Offsets) -> None: ...
    def rebalanced(
        self, group_id: str, generation: int, owned: Mapping[str, list[TopicPartition]]
    ) -> None: ...
    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None: ...
    def truncated(self, partition: Partition, to: int) -> None: ...
    def log_start_moved(self, partition: Partition, to: int) -> None: ...
    def leader_changed(self, partition: Partition) -> None: ...
    def topic_deleted(self, name: str, topic_id: bytes) -> None: ...
    def requested(self, call: ReceivedRequest) -> None: ...
    def answered(self, call: ReceivedRequest, response: Message | None) -> None: ...

    # --- the run

    def healed(self) -> None: ...
    def rested(self) -> None: ...
    def finished(self) -> None: ...


class Watch:
    """Passes each event on to the invariants that look for it: `watch.delivered(member, record)`."""

    def __init__(self, invariants: Iterable[Invariant]) -> None:
        self.invariants = list(invariants)
        for name, default in vars(Invariant).items():
            if callable(default) and not name.startswith("_") and name != "broken":
                hooks = [
                    getattr(one, name) for one in self.invariants if getattr(type(one), name) is not default
                ]
                setattr(self, name, _broadcast(hooks))

    def __getattr__(self, name: str) -> Callable[..., None]:
        raise AttributeError(f"there is no event {name!r}")


def _broadcast(hooks: list[Callable[..., None]]) -> Callable[..., None]:
    def tell(*args: Any) -> None:
        for hook in hooks:
            hook(*args)

    return tell
