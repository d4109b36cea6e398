"""Any sequence of calls keeps the table in step with a model of eight lines, and its indexes in step with itself."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kclient.positions.state import HAS_POSITION, FetchState
from kclient.positions.strategy import EARLIEST, LATEST
from kclient.positions.table import Positions
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition

INITIALIZING, FETCHING, AWAIT_RESET, AWAIT_VALIDATION = FetchState
PARTITIONS = [TopicPartition("t", n) for n in range(3)]
some = st.sampled_from(PARTITIONS)
offsets = st.integers(0, 100)
epochs = st.none() | st.integers(0, 3)
leaders = st.builds(LeaderAndEpoch, st.none() | st.integers(1, 3), epochs)


class TableMachine(RuleBasedStateMachine):
    """The model: partition → (state, offset, data epoch, leader)."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Positions()
        self.model: dict[
            TopicPartition, tuple[FetchState, int | None, int | None, LeaderAndEpoch | None]
        ] = {}
        self.eras: set[int] = set()

    @rule(partitions=st.lists(some, unique=True))
    def assign(self, partitions: list[TopicPartition]) -> None:
        self.table.assign(partitions)
        self.model = {tp: self.model.get(tp, (INITIALIZING, None, None, None)) for tp in partitions}

    @precondition(lambda self: self.model)
    @rule(data=st.data(), offset=offsets, epoch=epochs, leader=leaders)
    def seek(self, data: st.DataObject, offset: int, epoch: int | None, leader: LeaderAndEpoch) -> None:
        tp = data.draw(st.sampled_from(list(self.model)))
        self.table.seek(tp, OffsetAndMetadata(offset, epoch), leader)
        state = FETCHING if epoch is None or leader.epoch is None else AWAIT_VALIDATION
        self.model[tp] = (state, offset, epoch, leader)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), strategy=st.sampled_from([EARLIEST, LATEST]))
    def reset(self, data: st.DataObject, strategy: object) -> None:
        tp = data.draw(st.sampled_from(list(self.model)))
        self.table.request_reset(tp, strategy)  # type: ignore[arg-type]
        self.model[tp] = (AWAIT_RESET, None, None, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), leader=leaders, can_validate=st.booleans())
    def follow(self, data: st.DataObject, leader: LeaderAndEpoch, can_validate: bool) -> None:
        tp = data.draw(st.sampled_from(list(self.model)))
        self.table.follow_leader(tp, leader, can_validate=can_validate)
        _, offset, epoch, old = self.model[tp]
        if offset is not None and leader.node_id is not None and leader != old:
            checked = can_validate and epoch is not None and leader.epoch is not None
            self.model[tp] = (AWAIT_VALIDATION if checked else FETCHING, offset, epoch, leader)

    @precondition(lambda self: any(state is AWAIT_VALIDATION for state, *_ in self.model.values()))
    @rule()
    def validated(self) -> None:
        tp = next(tp for tp, (state, *_) in self.model.items() if state is AWAIT_VALIDATION)
        self.table.complete_validation(tp)
        self.model[tp] = (FETCHING, *self.model[tp][1:])

    @precondition(lambda self: any(state is FETCHING for state, *_ in self.model.values()))
    @rule(count=st.integers(1, 5), epoch=epochs)
    def deliver(self, count: int, epoch: int | None) -> None:
        tp, (_, offset, _, leader) = next((tp, m) for tp, m in self.model.items() if m[0] is FETCHING)
        assert offset is not None
        self.table.advance(tp, offset + count, epoch)
        self.model[tp] = (FETCHING, offset + count, epoch, leader)

    @invariant()
    def agrees_with_the_model(self) -> None:
        assert set(self.table.assigned()) == set(self.model)
        for tp, (state, offset, epoch, leader) in self.model.items():
            actual = self.table.state(tp)
            assert actual.fetch_state is state
            assert (actual.position is None) == (state not in HAS_POSITION)
            if actual.position is not None:
                assert (actual.position.offset, actual.position.offset_epoch) == (offset, epoch)
                assert actual.position.leader == leader
        fetching = {tp for tp, (state, *_) in self.model.items() if state is FETCHING}
        assert set(self.table.all_consumed()) == fetching
        waiting = [
            *self.table.needing_committed(),
            *self.table.needing_reset(0),
            *self.table.needing_validation(0),
        ]
        assert set(waiting) == set(self.model) - fetching

    @invariant()
    def eras_are_unique(self) -> None:
        eras = [state.era for _, state in self.table.items()]
        assert len(eras) == len(set(eras))


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
