"""Any sequence of calls keeps the table in step with a model that knows two tables of Kafka and nothing of the code.

`MOVES` is Kafka's table of transitions, `ALLOWED` its table of what each state allows. The model is a plain dictionary
for each partition that obeys them; after each call everything that can be asked of the real table is compared.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kclient.errors import InternalError, NotAssignedError
from kclient.positions.state import EARLIEST, LATEST, FetchPosition, FetchState
from kclient.positions.table import Positions
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition

STATES = ("initializing", "fetching", "await_reset", "await_validation")
MOVES = """
    from              initializing  fetching  await_reset  await_validation
    initializing      no            yes       yes          yes
    fetching          no            yes       yes          yes
    await_reset       no            yes       yes          no
    await_validation  no            yes       yes          yes
"""
ALLOWED = """
    question          initializing  await_reset  await_validation  fetching
    fetch             no            no           no                yes
    OffsetFetch       yes           no           no                no
    ListOffsets       no            yes          no                no
    OffsetForLeader   no            no           yes               no
    position          no            no           no                yes
    commit            no            no           no                yes
"""
NEEDS_POSITION = {"fetching", "await_validation"}
PARTITIONS = [TopicPartition("t", n) for n in range(3)]


def table_of(text: str) -> dict[tuple[str, str], bool]:
    """(row, column) → yes or no."""
    head, *rows = [line.split() for line in text.strip().splitlines()]
    return {
        (row[0], column): word == "yes"
        for row in rows
        for column, word in zip(head[1:], row[1:], strict=True)
    }


MAY_MOVE, MAY = table_of(MOVES), table_of(ALLOWED)
some = st.sampled_from(PARTITIONS)
offsets = st.integers(0, 100)
epochs = st.none() | st.integers(0, 3)
leaders = st.builds(LeaderAndEpoch, st.none() | st.integers(1, 3), epochs)
subsets = st.lists(some, unique=True)


@pytest.mark.parametrize("old", STATES)
@pytest.mark.parametrize("new", STATES)
@pytest.mark.spec("S0-15", "S0-16", "S0-17", "S0-18", "B.6.2")
def test_every_transition_is_made_or_refused_as_the_table_says(old: str, new: str) -> None:
    tp, here = PARTITIONS[0], FetchPosition(7, 2, LeaderAndEpoch(1, 3))
    table = Positions()
    table.assign([tp])
    state = table.state(tp)
    if old != "initializing":
        table._transition(tp, state, FetchState(old), here if old in NEEDS_POSITION else None)
    before = (state.fetch_state, state.position, state.position_version)
    if MAY_MOVE[old, new]:
        table._transition(tp, state, FetchState(new), here if new in NEEDS_POSITION else None)
        assert state.fetch_state.value == new
        assert state.position == (here if new in NEEDS_POSITION else None)
        with pytest.raises(InternalError):
            table._transition(tp, state, FetchState.FETCHING, None)
    else:
        with pytest.raises(InternalError):
            table._transition(tp, state, FetchState(new), here if new in NEEDS_POSITION else None)
        assert (state.fetch_state, state.position, state.position_version) == before


class TableMachine(RuleBasedStateMachine):
    """The model: partition → what Kafka's pages say is known of it. Time is a number that a rule moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Positions()
        self.model: dict[TopicPartition, dict[str, Any]] = {}
        self.now = 0.0
        self.lives = 0
        self.asked: list[tuple[TopicPartition, int, int]] = []

    # --- the model's own moves

    def new(self) -> dict[str, Any]:
        self.lives += 1
        return {"state": "initializing", "at": None, "life": self.lives, "paused": False, "revoked": False,
                "telling": False, "range": False, "retry": None, "asked": False, "strategy": None,
                "lost": None}  # fmt: skip

    def move(self, one: dict[str, Any], state: str, at: Any = None, **fields: Any) -> None:
        if MAY_MOVE[one["state"], state]:
            self.lives += 1
            one |= {"state": state, "at": at, "life": self.lives, "range": False, "retry": None,
                    "asked": False, "strategy": None, "lost": None, **fields}  # fmt: skip

    def validate(self, one: dict[str, Any], offset: int, epoch: int | None, leader: LeaderAndEpoch) -> None:
        known = epoch is not None and leader.epoch is not None
        self.move(one, "await_validation" if known else "fetching", (offset, epoch, leader))

    # --- what users, rebalances and metadata do

    @rule(partitions=subsets)
    def assign(self, partitions: list[TopicPartition]) -> None:
        self.table.assign(partitions)
        self.model = {tp: self.model.get(tp) or self.new() for tp in partitions}
        for one in self.model.values():
            one["revoked"] = False

    @rule(tp=some, offset=offsets, epoch=epochs, leader=leaders)
    def seek(self, tp: TopicPartition, offset: int, epoch: int | None, leader: LeaderAndEpoch) -> None:
        target = OffsetAndMetadata(offset, epoch)
        if tp not in self.model:
            with pytest.raises(NotAssignedError):
                self.table.seek(tp, target, leader)
            return
        self.table.seek(tp, target, leader)
        self.move(self.model[tp], "fetching", (offset, None, leader))
        self.validate(self.model[tp], offset, epoch, leader)

    @rule(tp=some, strategy=st.sampled_from([EARLIEST, LATEST]), lost=st.booleans())
    def reset(self, tp: TopicPartition, strategy: Any, lost: bool) -> None:
        if (one := self.model.get(tp)) is None:
            return
        self.table.request_offset_reset(tp, strategy, lost=lost)
        if one["strategy"] != strategy:
            offset = one["at"][0] if lost and one["at"] else None
            self.move(one, "await_reset", strategy=strategy, lost=offset)

    @rule(tp=some, leader=leaders, can_validate=st.booleans())
    def new_leader(self, tp: TopicPartition, leader: LeaderAndEpoch, can_validate: bool) -> None:
        if (one := self.model.get(tp)) is None:
            return
        self.table.state(tp).preferred_read_replica = 9
        self.table.follow_leader(tp, leader, can_validate=can_validate)
        changes = one["at"] is not None and leader.node_id is not None and leader != one["at"][2]
        assert (self.table.state(tp).preferred_read_replica is None) == changes
        if not changes:
            return
        offset, epoch, _ = one["at"]
        if can_validate and epoch is not None and leader.epoch is not None:
            self.validate(one, offset, epoch, leader)
        elif one["state"] == "await_validation":
            self.move(one, "fetching", (offset, epoch, leader))
        else:
            one["at"] = (offset, epoch, leader)

    @rule(tp=some, paused=st.booleans())
    def pause_or_resume(self, tp: TopicPartition, paused: bool) -> None:
        if tp in self.model:
            (self.table.pause if paused else self.table.resume)(tp)
            self.model[tp]["paused"] = paused

    @rule(partitions=subsets)
    def will_be_revoked(self, partitions: list[TopicPartition]) -> None:
        self.table.mark_pending_revocation(partitions)
        for tp in partitions:
            if tp in self.model:
                self.model[tp]["revoked"] = True

    @rule(partitions=subsets, over=st.booleans())
    def is_told(self, partitions: list[TopicPartition], over: bool) -> None:
        (self.table.clear_pending_callback if over else self.table.mark_pending_callback)(partitions)
        for tp in partitions:
            if tp in self.model:
                self.model[tp]["telling"] = not over

    # --- what brokers answer

    @rule(tp=some)
    def validated(self, tp: TopicPartition) -> None:
        if (one := self.model.get(tp)) is not None:
            self.table.complete_validation(tp)
            if one["state"] == "await_validation":
                self.move(one, "fetching", one["at"])

    @rule(tp=some)
    def diverges(self, tp: TopicPartition) -> None:
        if (one := self.model.get(tp)) is not None:
            self.table.mark_diverging(tp, 1, 5)
            if one["state"] == "fetching":
                self.move(one, "await_validation", one["at"])

    @rule(tp=some, count=st.integers(1, 5), epoch=epochs)
    def deliver(self, tp: TopicPartition, count: int, epoch: int | None) -> None:
        if (one := self.model.get(tp)) is None:
            return
        if not MAY["position", one["state"]]:
            with pytest.raises(InternalError):
                self.table.advance(tp, 1, epoch)
            return
        offset, _, leader = one["at"]
        self.table.advance(tp, offset + count, epoch)
        one["at"] = (offset + count, epoch, leader)

    @rule(tp=some)
    def is_out_of_range(self, tp: TopicPartition) -> None:
        if (one := self.model.get(tp)) is not None and MAY["fetch", one["state"]]:
            self.table.mark_out_of_range(tp)
            one["range"] = True

    # --- questions on their way, and time

    @rule(tp=some)
    def ask(self, tp: TopicPartition) -> None:
        if (one := self.model.get(tp)) is not None:
            position_version = self.table.state(tp).position_version
            self.asked.append((tp, position_version, one["life"]))
            self.table.mark_in_flight({tp: position_version}, self.now + 3)
            one |= {"asked": True, "retry": self.now + 3}

    @rule(data=st.data(), wait=st.integers(0, 5))
    def fail(self, data: st.DataObject, wait: int) -> None:
        """Responses of long ago come too."""
        if self.asked:
            tp, position_version, life = data.draw(st.sampled_from(self.asked))
            self.table.set_next_allowed_retry({tp: position_version}, self.now + wait)
            if tp in self.model and self.model[tp]["life"] == life:
                self.model[tp]["retry"] = self.now + wait

    @rule(data=st.data())
    def is_answered(self, data: st.DataObject) -> None:
        if self.asked:
            tp, position_version, life = data.draw(st.sampled_from(self.asked))
            self.table.clear_in_flight({tp: position_version})
            if tp in self.model and self.model[tp]["life"] == life:
                self.model[tp]["asked"] = False

    @rule(seconds=st.integers(1, 3))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    # --- what must hold

    @invariant()
    def agrees_with_the_model(self) -> None:
        assert set(self.table.assigned()) == set(self.model)
        for tp, one in self.model.items():
            real = self.table.state(tp)
            at = real.position and (real.position.offset, real.position.offset_epoch, real.position.leader)
            assert (real.fetch_state.value, at) == (one["state"], one["at"])
            assert (at is not None) == (one["state"] in NEEDS_POSITION)
            assert (real.reset_strategy, real.lost_offset) == (one["strategy"], one["lost"])
            kept = one["paused"] or one["revoked"] or one["telling"] or one["range"]
            assert self.table.is_fetchable(tp) == (MAY["fetch", one["state"]] and not kept)
            found = self.table.position(tp)
            assert (found is not None) == MAY["position", one["state"]]

    @invariant()
    def each_question_is_asked_for_its_partitions(self) -> None:
        def where(question: str, ready: Any) -> set[TopicPartition]:
            return {tp for tp, one in self.model.items() if MAY[question, one["state"]] and ready(one)}

        def due(one: dict[str, Any]) -> bool:
            return not one["asked"] and (one["retry"] is None or one["retry"] <= self.now)

        assert set(self.table.partitions_needing_committed()) == where(
            "OffsetFetch", lambda one: not one["revoked"]
        )
        assert set(self.table.partitions_needing_reset(self.now)) == where("ListOffsets", due)
        assert set(self.table.partitions_needing_validation(self.now)) == where("OffsetForLeader", due)
        assert set(self.table.all_consumed()) == where("commit", lambda one: True)
        assert set(self.table.paused()) == {tp for tp, one in self.model.items() if one["paused"]}
        later = [
            one["retry"]
            for one in self.model.values()
            if one["state"].startswith("await") and one["retry"] is not None and one["retry"] > self.now
        ]
        assert self.table.next_retry(self.now) == min(later, default=None)

    @invariant()
    def an_old_answer_fits_only_what_is_as_it_was(self) -> None:
        for tp, position_version, life in self.asked:
            unchanged = tp in self.model and self.model[tp]["life"] == life
            assert (self.table.find(tp, position_version) is not None) == unchanged


TestTable = pytest.mark.spec("S0-10", "S0-13", "S0-19", "S0-43", "S0-48", "B.6.2", "B.6.3", "B.6.4")(
    TableMachine.TestCase
)
TestTable.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
