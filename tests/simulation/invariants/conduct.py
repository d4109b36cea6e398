"""What clients request from brokers: nothing that they know to fail, or that a response forbade."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.request_context import RequestContext
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.protocol.message import Message
from kclient.runtime import Address
from kclient.simulation.process import current_name
from tests.simulation.application import Member
from tests.simulation.invariants.groups import HEARTBEAT, LEAVING, epoch_of, is_static
from tests.simulation.invariants.windows import others_than
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

LATE_SECONDS: Final = 12.0  # what was sent before has arrived by then
DELAYING: Final = ("cut", "narrow", "part", "pause_broker", "slow", "strand", "close_stranded")
# A topic with epochs of its own, while requests for the old one are under way.
BEGINS_ANEW: Final = ("recreate",)
WINDOW_SECONDS: Final = 20.0
WARNINGS_IN_WINDOW: Final = 15  # the pauses grow from 0.05 s to 1 s, then one WARNING in 30 s
ATTEMPTS_IN_WINDOW: Final = 120  # three kinds of connections, one attempt of each in a second, more at first


class OwnGenerations(Invariant):
    """A member commits under a generation that it has joined; also inside of `on_partitions_revoked`."""

    id = "I-12"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.joined: defaultdict[str, set[int]] = defaultdict(set)

    def answered(self, call: RequestContext, response: Message | None) -> None:
        if call.api == HEARTBEAT and response is not None:
            self.joined[call.client_id].add(epoch_of(response))

    def requested(self, call: RequestContext) -> None:
        message: Any = call.message
        if call.api == "SyncGroup":
            self.joined[call.client_id].add(message.generation_id)
        elif call.api == "OffsetCommit":
            generation = message.generation_id_or_member_epoch
            if generation >= 0 and generation not in self.joined[call.client_id]:
                self.broken(f"{call.client_id} commits under generation {generation}, which it never joined")


class StaticConduct(Invariant):
    """A static member does not leave, and a fenced one sends no more requests."""

    id = "I-17"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.fenced_at: dict[str, float] = {}

    def began(self, member: Member) -> None:
        self.fenced_at.pop(member.name, None)

    def exchanged(self, request: Message, response: Message) -> None:
        if getattr(response, "error_code", 0) == FENCED_INSTANCE_ID:
            self.fenced_at.setdefault(current_name(), self.stage.now)

    def requested(self, call: RequestContext) -> None:
        if not is_static(self.stage, call.client_id):
            return
        if call.api == "LeaveGroup" or (call.api == HEARTBEAT and epoch_of(call.message) == LEAVING):
            self.broken(f"{call.client_id} leaves the group, and is a static member")
        fenced_at = self.fenced_at.get(call.client_id)
        joins = call.api in ("JoinGroup", "SyncGroup", "Heartbeat", HEARTBEAT)
        if joins and fenced_at is not None and self.stage.now - fenced_at > LATE_SECONDS:
            self.broken(
                f"{call.client_id} sends {call.api}, and was told at {fenced_at:.3f} s that it is fenced"
            )


class UndisturbedRenewal(Invariant):
    """While a session is renewed nothing but its tokens is sent."""

    id = "I-16"

    def requested(self, call: RequestContext) -> None:
        if call.connection.sasl is not None and call.api != "SaslAuthenticate":
            self.broken(f"{call.client_id} sends {call.api} in the middle of an authentication")


class NewestEpoch(Invariant):
    """No client uses a leader epoch that it knows to be over: it would be refused again and again."""

    id = "I-26"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.highest: dict[tuple[str, object, int], tuple[int, float]] = {}
        self.applies = len(list(others_than(stage, (*DELAYING, *BEGINS_ANEW)))) == len(stage.plan.faults)

    def began(self, member: Member) -> None:
        self.highest = {
            key: seen for key, seen in self.highest.items() if not key[0].startswith(f"{member.name} ")
        }

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.highest.clear()

    def requested(self, call: RequestContext) -> None:
        if call.api not in ("Fetch", "OffsetForLeaderEpoch") or not self.applies:
            return
        message: Any = call.message
        for topic in message.topics:
            for part in topic.partitions:
                key = f"{call.client_id} {call.api}", topic.topic or topic.topic_id, part.partition
                self._look(key, part.current_leader_epoch)

    def _look(self, key: tuple[str, object, int], epoch: int) -> None:
        highest, since = self.highest.get(key, (-1, 0.0))
        if epoch > highest:
            self.highest[key] = epoch, self.stage.now
        elif epoch < 0:
            self.highest.pop(key, None)  # an older broker's metadata: epochs are not known any more
        elif epoch < highest and self.stage.now - since > LATE_SECONDS:
            self.broken(f"{key[0]} asks about {key[2]} under leader epoch {epoch}, and knows {highest}")
            self.applies = False  # once will do


class Windows:
    """Counts what happens, by key, in the last `WINDOW_SECONDS`."""

    def __init__(self) -> None:
        self.times: defaultdict[object, deque[float]] = defaultdict(deque)

    def add(self, key: object, now: float) -> int:
        """Count one more; how many there are."""
        times = self.times[key]
        times.append(now)
        while times[0] < now - WINDOW_SECONDS:
            times.popleft()
        return len(times)

    def forget(self, key: object) -> None:
        """Count again."""
        self.times.pop(key, None)


class WarningsOfBroker(Invariant):
    """While a broker is out of reach it is worth a WARNING with each step of the backoff, and no more.

    One that comes back and goes again is out of reach again: a connection to it ended.
    """

    id = "I-37"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.windows = Windows()

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if record.levelno != logging.WARNING or not hasattr(record, "node_id"):
            return
        if not isinstance(record.args, tuple):
            return
        # Bootstrap servers are several.
        who = vars(record)["host"] if record.node_id is None else record.node_id
        if record.args[0] == "disconnected":
            self.windows.forget((str(member), who))
        if record.args[0] != "not connected":
            return
        count = self.windows.add((str(member), who), self.stage.now)
        if count == WARNINGS_IN_WINDOW + 1:
            self.broken(f"{member} warned {count} times of broker {who} in {WINDOW_SECONDS:g} s")


class PacedAttempts(Invariant):
    """Who cannot connect tries again after a pause that grows to a second."""

    id = "I-26"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.windows = Windows()

    def connecting(self, member: Member, address: Address) -> None:
        count = self.windows.add((str(member), address), self.stage.now)
        if count == ATTEMPTS_IN_WINDOW + 1:
            self.broken(f"{member} tried {count} times to connect to {address} in {WINDOW_SECONDS:g} s")


ALL = [OwnGenerations, StaticConduct, UndisturbedRenewal, NewestEpoch, WarningsOfBroker, PacedAttempts]
