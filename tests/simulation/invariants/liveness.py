"""What must happen, and how soon. Most of it counts from the moment at which every fault has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.types import TopicPartition
from tests.simulation.application import CLOSE_SECONDS, Member
from tests.simulation.bounds import call_seconds, progress_seconds
from tests.simulation.invariants.unled import KnowsThePlan
from tests.simulation.invariants.windows import keeps_partitions_back, stopped
from tests.simulation.watch import Handed, Invariant, Offsets

if TYPE_CHECKING:
    from tests.simulation.ledger import Row
    from tests.simulation.stage import Stage

SLACK: Final = 1.0
LOOK_EVERY: Final = 10  # polls that returned something


class Progress(KnowsThePlan):
    """Every partition with data goes on within the bound after everything has healed."""

    id = "I-22"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.waiting: dict[TopicPartition, Row] = {}
        self.until = 0.0
        self.grown = False

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.grown = True

    def healed(self) -> None:
        scenario = self.stage.scenario
        if scenario.reset != "earliest":
            return  # what is after the end that was looked up has no owner
        self.until = self.stage.now + progress_seconds(scenario)
        grown = self.grown or len(self.stage.partitions()) > scenario.partitions
        if grown or keeps_partitions_back(self.stage):
            self.until += scenario.metadata_max_age_ms / 1000  # new partitions are found by and by
        for row in self.stage.ledger.undelivered():
            if not (row.again or row.reborn):
                self.waiting.setdefault(row.tp, row)

    def delivered(self, handed: Handed) -> None:
        if handed.tp in self.waiting:
            del self.waiting[handed.tp]
            if self.stage.now > self.until:
                self.broken(f"{handed}, the first of it so long after everything had healed")

    def handler_began(self, member: Member, tp: TopicPartition, row: Row) -> None:
        if self.waiting.pop(tp, None) is not None and self.stage.now > self.until:
            self.broken(f"{member} handles {tp} for the first time so long after everything had healed")

    def finished(self) -> None:
        for tp, row in self.waiting.items():
            if not row.gone and self.stage.now > self.until and not self.is_nobodys(tp):
                self.broken(f"nothing of {tp} was handed out since everything has healed")


class InTime(Invariant):
    """Every call returns or raises within its timeout; listeners and stopped hosts take their own time."""

    id = "I-23"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.began_at: dict[tuple[str, str], tuple[float, float, float]] = {}

    def _begin(self, member: Member, call: str, most: float) -> None:
        self.began_at[str(member), call] = self.stage.now, member.callback_seconds, most

    def _end(self, member: Member, call: str) -> None:
        if (str(member), call) not in self.began_at:
            return
        began, before, most = self.began_at.pop((str(member), call))
        seconds = self.stage.now - began - (member.callback_seconds - before)
        if seconds > most + SLACK and not stopped(self.stage, member.name, began):
            self.broken(f"{member}: {call} took {seconds:.3f} s of {most:g}")

    def poll_began(self, member: Member, timeout: float) -> None:
        self._begin(member, "poll", timeout)

    def poll_ended(self, member: Member, count: int) -> None:
        self._end(member, "poll")

    def commit_began(self, member: Member, offsets: Offsets | None) -> None:
        if "callback" not in member.inside:
            self._begin(member, "commit", call_seconds(self.stage.scenario))

    def commit_ended(self, member: Member, offsets: Offsets | None, error: BaseException | None) -> None:
        if self.stage.scenario.commit == "sync" and "callback" not in member.inside:
            self._end(member, "commit")

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        self.began_at.pop((str(member), "poll"), None)


class Closing(Invariant):
    """`close()` ends within its timeout, whatever goes on, and nothing of the consumer is left."""

    id = "I-24"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.began_at: dict[str, tuple[float, float]] = {}

    def close_began(self, member: Member, timeout: float) -> None:
        self.began_at[str(member)] = self.stage.now, member.callback_seconds

    def close_ended(self, member: Member, seconds: float, error: BaseException | None) -> None:
        began, before = self.began_at.pop(str(member), (self.stage.now - seconds, 0.0))
        own = seconds - (member.callback_seconds - before)
        if own > CLOSE_SECONDS + SLACK and not stopped(self.stage, member.name, began):
            self.broken(f"{member}: close took {own:.3f} s of {CLOSE_SECONDS:g}")
        everything = self.stage.hosts[member.name].leftovers()
        left = [what for what in everything if not self._may_be_left(member, what)]
        if left:
            self.broken(f"{member} is closed, and left is {', '.join(left[:3])}")

    def _may_be_left(self, member: Member, what: str) -> bool:
        """The application itself, and what is still on its way to the kernel."""
        return f"application {member}" in what or "SimTransport.arrived" in what or "RetransmitTimer." in what


class Fairness(Invariant):
    """A partition whose records are there is served within two rounds of all others."""

    id = "I-29"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.turns: dict[str, int] = {}
        self.last: dict[str, TopicPartition] = {}

    def delivered(self, handed: Handed) -> None:
        name = handed.member.name
        if self.last.get(name) != handed.tp:
            self.last[name] = handed.tp
            self.turns[name] = self.turns.get(name, 0) + 1
        if handed.holding is not None:
            handed.holding.passed_over_since = None

    def poll_ended(self, member: Member, count: int) -> None:
        if not count or member.polls % LOOK_EVERY or member.consumer is None:
            return
        buffer, turn = member.consumer._core.buffer, self.turns.get(member.name, 0)
        most = 2 * len(member.holdings)
        for tp, holding in member.holdings.items():
            queue = buffer.queue(tp)
            if holding.paused or not queue or queue[0].is_blocked or queue[0].error_code:
                holding.passed_over_since = None
            elif holding.passed_over_since is None:
                holding.passed_over_since = turn
            elif turn - holding.passed_over_since > most:
                self.broken(
                    f"{member}: {tp} was passed over for {turn - holding.passed_over_since} turns of others"
                )
                holding.passed_over_since = turn


ALL = [Progress, InTime, Closing, Fairness]
