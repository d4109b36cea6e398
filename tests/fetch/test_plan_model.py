"""After any sequence of events, the updated plan says what a new plan would say.

A fetcher without its loop: the machine seeks, pauses, rebalances, moves leaders and answers Fetches, and compares.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kclient.errors import KclientError
from kclient.fetch.fetcher import Fetcher
from kclient.fetch.plan import FetchPlan, build_plan
from kclient.fetch.request import NodeFetchState
from kclient.generated.fetch_response import EpochEndOffset
from kclient.network.backoff import Backoff
from kclient.positions.state import EARLIEST
from kclient.runtime import Runtime
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import DeliveryPipeline, answer, batch, data
from tests.positions.fake_cluster import FakeCluster

PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("b", 1)]
LEADERS = {tuple(tp): (1 + n % 2, 5) for n, tp in enumerate(PARTITIONS)}
some = st.sampled_from(PARTITIONS)
subsets = st.lists(some, unique=True)
epochs = st.none() | st.integers(3, 5)


@attrs.define
class Clock(Runtime):
    """Time stands until a rule moves it on."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds


def said(plan: FetchPlan) -> Any:
    """All that anybody asks of a plan."""
    requests = {node_id: node.requests for node_id, node in plan.nodes.items() if node.requests}
    sets = ("partitions", "backpressured", "awaiting_position")
    members = [
        {node_id: set(getattr(node, one)) for node_id, node in plan.nodes.items() if getattr(node, one)}
        for one in sets
    ]
    return requests, *members, plan.needs_metadata, sorted(plan.ready_nodes())


class PlanMachine(RuleBasedStateMachine):
    """The fetcher's plan beside a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = FakeCluster(LEADERS)
        self.pipeline = DeliveryPipeline(*PARTITIONS, retry_backoff_ms=100, metadata_max_age_ms=5000)
        self.positions = self.pipeline.positions
        self.clock = Clock.seeded(1)
        parts: Any = (self.cluster, self.positions, self.pipeline.buffer, self.pipeline.config, self.clock)
        self.fetcher = Fetcher(*parts)
        self.nodes = self.fetcher._nodes

    def leader(self, tp: TopicPartition) -> LeaderAndEpoch:
        return self.cluster.metadata.leader(tp)

    def versions(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {
            tp: state.position_version for tp in partitions if (state := self.positions.find(tp)) is not None
        }

    # --- users and rebalances

    @rule(partitions=subsets)
    def assign(self, partitions: list[TopicPartition]) -> None:
        self.positions.assign(partitions)

    @rule(tp=some, offset=st.integers(0, 9), epoch=epochs)
    def seek(self, tp: TopicPartition, offset: int, epoch: int | None) -> None:
        if tp in self.positions:
            self.positions.seek(tp, OffsetAndMetadata(offset, epoch), self.leader(tp))
            self.pipeline.buffer.drop([tp])

    @rule(tp=some, lost=st.booleans())
    def reset(self, tp: TopicPartition, lost: bool) -> None:
        if tp in self.positions:
            self.positions.request_offset_reset(tp, EARLIEST, lost=lost)

    @rule(tp=some, pause=st.booleans())
    def pause_or_resume(self, tp: TopicPartition, pause: bool) -> None:
        if tp in self.positions:
            (self.positions.pause if pause else self.positions.resume)(tp)

    @rule(partitions=subsets, going=st.booleans())
    def revoke(self, partitions: list[TopicPartition], going: bool) -> None:
        (self.positions.mark_pending_revocation if going else self.positions.clear_pending_revocation)(
            partitions
        )

    @rule(partitions=subsets, over=st.booleans())
    def tell(self, partitions: list[TopicPartition], over: bool) -> None:
        (self.positions.clear_pending_callback if over else self.positions.mark_pending_callback)(partitions)

    @rule(covered=st.sets(st.sampled_from("ab")))
    def subscribe(self, covered: set[str]) -> None:
        self.positions.follow_subscription(covered.__contains__)

    # --- the position updater

    @rule(partitions=subsets)
    def ask(self, partitions: list[TopicPartition]) -> None:
        waiting = self.positions.partitions_needing_reset(
            self.clock.now()
        ) | self.positions.partitions_needing_validation(self.clock.now())
        self.positions.mark_in_flight(
            self.versions([tp for tp in partitions if tp in waiting]), self.clock.now() + 30
        )

    @rule(partitions=subsets, found=st.booleans())
    def is_answered(self, partitions: list[TopicPartition], found: bool) -> None:
        self.positions.clear_in_flight(self.versions(partitions))
        for tp in self.versions(partitions):
            if found:
                self.positions.complete_validation(tp)
            if found and tp in self.positions.partitions_needing_reset(self.clock.now()):
                self.positions.seek(tp, OffsetAndMetadata(0), self.leader(tp))

    @rule(tp=some, raised=st.booleans())
    def is_out_of_range(self, tp: TopicPartition, raised: bool) -> None:
        if tp in self.positions and self.positions.position(tp) is not None:
            (self.positions.resume_after_error if raised else self.positions.mark_out_of_range)(tp)

    @rule(tp=some, leader=st.integers(1, 4), epoch=st.integers(5, 7))
    def lead(self, tp: TopicPartition, leader: int, epoch: int) -> None:
        """Metadata brings another leader, perhaps one that no broker is."""
        self.cluster.set_leaders({**LEADERS, tuple(tp): (leader, epoch)})

    @rule(tp=some, can_validate=st.booleans())
    def follow_leader(self, tp: TopicPartition, can_validate: bool) -> None:
        if tp in self.positions:
            self.positions.follow_leader(tp, self.leader(tp), can_validate=can_validate)

    @rule(tp=some, topic_id=st.sampled_from([b"1" * 16, b"2" * 16]))
    def replace(self, tp: TopicPartition, topic_id: bytes) -> None:
        if tp in self.positions:
            self.positions.follow_topic(tp, topic_id)

    # --- fetching

    @precondition(lambda self: self.fetcher._plan.ready_nodes())
    @rule(
        draw=st.data(),
        busy=subsets,
        code=st.sampled_from([0, 0, 0, 1, 6, 29, 75]),
        preferred=st.sampled_from([-1, -1, 1, 3]),
        diverges=st.booleans(),
    )
    def fetch(
        self, draw: st.DataObject, busy: list[TopicPartition], code: int, preferred: int, diverges: bool
    ) -> None:
        """One question to a node: the session says what the plan wants, and some of it is answered."""
        node_id = draw.draw(st.sampled_from(self.fetcher._plan.ready_nodes()))
        backoff = Backoff.for_retries(self.pipeline.config, self.clock)
        node = self.nodes.setdefault(node_id, NodeFetchState(node_id, backoff))
        wanted = self.fetcher._plan.nodes[node_id].requests
        is_full = node.session.next_request(wanted, node.changes).epoch == 0
        node.changes = {}
        assert dict(node.session.partitions) == wanted
        rows = []
        for tp, one in node.session.partitions.items():
            if tp not in busy:
                rows += [data(tp, b"")] if is_full else []
            elif code:
                rows.append(data(tp, None, error_code=code))
            else:
                end = EpochEndOffset(epoch=4, end_offset=0) if diverges else EpochEndOffset()
                records = batch(one.offset, one.offset + 1) if preferred < 0 else b""
                fields = {"preferred_read_replica": preferred, "diverging_epoch": end}
                rows.append(data(tp, records, **fields))
        session_id = node.session.session_id or 7
        self.fetcher._responses.handle(node_id, node.session, answer(*rows, session_id=session_id))

    @rule(node_id=st.integers(1, 3))
    def lose_connection(self, node_id: int) -> None:
        if node_id in self.nodes:
            self.nodes[node_id].changes = None
        self.fetcher._responses.clear_read_replicas(PARTITIONS)

    @rule(max_records=st.integers(1, 3), drops=st.booleans())
    def poll(self, max_records: int, drops: bool) -> None:
        """While it decodes, room may be made for others."""
        with suppress(KclientError):
            if (task := self.pipeline.delivery.begin(max_records)) is not None:
                while not task.decode():
                    pass
                self.pipeline.buffer.drop(PARTITIONS if drops else [])
                self.says_what_a_new_plan_says()
                self.pipeline.delivery.finish(task)

    @rule(seconds=st.sampled_from([0.01, 0.1, 1, 6]))
    def time_passes(self, seconds: float) -> None:
        self.clock.seconds += seconds

    # --- what must hold

    @invariant()
    def says_what_a_new_plan_says(self) -> None:
        now = self.clock.now()
        self.fetcher._responses.follow_positions()
        if self.fetcher._update_plan(now):
            plan = self.fetcher._plan
            new = build_plan(self.fetcher._inputs, now)
            assert said(plan) == said(new)
            assert plan.valid_until <= new.valid_until


TestPlan = pytest.mark.spec("S2-08", "S2-12", "S2-24", "B.10.1", "B.10.2")(PlanMachine.TestCase)
TestPlan.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.spec("S2-08", "S2-39")
def test_records_returned_after_the_buffer_had_space_update_the_plan() -> None:
    machine = PlanMachine()
    machine.pipeline.arrive(PARTITIONS[0], batch(0, 1))
    machine.says_what_a_new_plan_says()
    machine.poll(1, drops=True)
    assert machine.pipeline.offset(PARTITIONS[0]) == 1
    machine.says_what_a_new_plan_says()
