"""The client's fetch session against the broker's own bookkeeping, under every loss that a network can bring.

The one promise (I-19): a request that the broker takes in makes it fetch exactly what the client wants.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kclient.fetch.request import build_request
from kclient.fetch.session import INITIAL_EPOCH, MAX_EPOCH, FetchRequestData, FetchSession, PartitionFetch
from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.types import TopicPartition
from tests.fetch.broker_sessions import BrokerSessions
from tests.positions.fake_cluster import config

TOPICS = ("orders", "audit")
PARTITIONS = tuple(TopicPartition(topic, n) for topic in TOPICS for n in range(3))
CONFIG = config()
CHANGES = st.tuples(
    st.sampled_from(["want", "want", "leave out", "made anew"]),
    st.sampled_from(PARTITIONS),
    st.integers(0, 3),
)


class Sessions(RuleBasedStateMachine):
    """Wants change, requests go out, and anything may happen to them; old responses come back much later."""

    def __init__(self) -> None:
        super().__init__()
        self.session = FetchSession()
        self.broker = BrokerSessions()
        self.incarnation = 1
        self.wanted: dict[TopicPartition, PartitionFetch] = {}
        self.ids: dict[str, bytes | None] = {topic: bytes([n + 1]) * 16 for n, topic in enumerate(TOPICS)}
        self.stepped: dict[TopicPartition, PartitionFetch] = {}
        self.newest = 17
        self.next_id = 10
        self.is_told = True

    @initialize(newest=st.sampled_from([12, 17]), is_told=st.booleans())
    def of_some_age(self, newest: int, is_told: bool) -> None:
        """`is_told`: the session hears what is new, else it has to find out."""
        self.newest, self.is_told = newest, is_told

    # --- what the client wants

    @rule(tp=st.sampled_from(PARTITIONS), offset=st.integers(0, 3), epoch=st.sampled_from([None, 1, 2]))
    def want(self, tp: TopicPartition, offset: int, epoch: int | None) -> None:
        self.wanted.pop(tp, None)
        self.wanted[tp] = PartitionFetch(tp, offset, epoch, self.ids[tp.topic], 1)

    @rule(tp=st.sampled_from(PARTITIONS))
    def leave_out(self, tp: TopicPartition) -> None:
        self.wanted.pop(tp, None)

    @rule(topic=st.sampled_from(TOPICS), known=st.booleans())
    def topic_is_made_anew(self, topic: str, known: bool) -> None:
        self.next_id += 1
        self.ids[topic] = bytes([self.next_id % 256]) * 16 if known else None
        for tp, one in self.wanted.items():
            if tp.topic == topic:
                self.wanted[tp] = attrs.evolve(one, topic_id=self.ids[topic])

    # --- what happens to a request

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=4))
    def some_time_of_peace(self, changes: list[tuple[str, TopicPartition, int]]) -> None:
        """Every request is answered; between two of them one thing changes."""
        for kind, tp, offset in changes:
            if (response := self._send()) is not None:
                self._hear(response)
            if kind == "leave out":
                self.leave_out(tp)
            elif kind == "made anew":
                self.topic_is_made_anew(tp.topic, offset > 0)
            else:
                self.want(tp, offset, 1)

    @rule(session=st.sampled_from(["goes on", "ends"]))
    def answered(self, session: str) -> None:
        if (response := self._send()) is not None:
            if session == "ends":
                self.broker.sessions.end(response.session_id)
                response.session_id = 0
            self._hear(response)

    @rule()
    def request_lost(self) -> None:
        if self.wanted:
            self._next_step()

    @rule()
    def answer_lost(self) -> None:
        self._send()

    @rule(index=st.integers(0, 5))
    def answer_lacks_a_partition(self, index: int) -> None:
        response = self._send()
        if response is not None and response.responses:
            is_full = self._was_full
            del response.responses[index % len(response.responses)]
            assert self._hear(response) is not is_full

    @rule(kind=st.sampled_from(["unknown", "twice"]))
    def answer_has_too_much(self, kind: str) -> None:
        response = self._send()
        if response is None or (kind == "twice" and not response.responses):
            return
        extra = FetchableTopicResponse(topic="other", partitions=[PartitionData(partition_index=0)])
        response.responses.append(extra if kind == "unknown" else response.responses[0])
        assert not self._hear(response)

    @rule(code=st.sampled_from([70, 71, 106, -1, 31]))
    def answer_is_an_error(self, code: int) -> None:
        if self._send() is not None:
            assert not self._hear(FetchResponse(error_code=code))
            assert self.session.session_id == 0 or code != 70

    # --- what happens to the broker

    @rule()
    def broker_evicts(self) -> None:
        self.broker.sessions.open.clear()

    @rule(newest=st.sampled_from([12, 17]))
    def broker_restarts(self, newest: int) -> None:
        self.incarnation += 1  # no two of them give the same session ids
        self.broker, self.newest = BrokerSessions(seed=self.incarnation), newest

    @rule(others=st.integers(0, 3))
    def others_take_slots(self, others: int) -> None:
        for _ in range(others):
            self.broker.sessions.create({}, False, False, 0.0)

    @rule(which=st.sets(st.integers(0, 2)))
    def nothing_is_new(self, which: set[int]) -> None:
        self.broker.unheard = {key for key in self.broker.fetched if key[1] in which}

    # --- the promises

    @invariant()
    def after_a_loss_the_next_request_is_full(self) -> None:
        """It names everything, forgets nothing, and ends the session that was."""
        if not self.wanted or self.session.epoch != INITIAL_EPOCH or self.session.session_id == 0:
            return
        step = self._next_step()
        assert step.epoch == INITIAL_EPOCH
        assert list(step.to_send) == list(self.wanted.values())
        assert not step.to_forget

    def teardown(self) -> None:
        self.wanted.setdefault(PARTITIONS[0], PartitionFetch(PARTITIONS[0], 0, None, None, 1))
        for _ in range(2):
            if (response := self._send()) is not None and self._hear(response):
                return
        raise AssertionError("client and broker do not agree")

    # ---

    def _next_step(self) -> FetchRequestData:
        """As the plan does it: the news are what came, went or changed since the last step, whatever became of that."""
        both, before = self.stepped | self.wanted, self.stepped
        news = [tp for tp in both if before.get(tp) is not self.wanted.get(tp)] if self.is_told else None
        self.stepped = dict(self.wanted)
        return self.session.next_request(dict(self.wanted), news, by_id=self.newest > 12)

    def _by_id(self) -> bool:
        return self.newest > 12 and all(one.topic_id is not None for one in self.wanted.values())

    def _send(self) -> FetchResponse | None:
        if not self.wanted:
            return None
        by_id = self._by_id()
        step = self._next_step()
        assert step.by_id is by_id
        self._was_full = step.epoch == INITIAL_EPOCH
        response = self.broker.handle(build_request(step, 1000, CONFIG), 17 if by_id else 12)
        if not response.error_code:
            assert self._fetched() == self._asked(list(self.wanted.values()), by_id)
            assert self._fetched() == self._asked(list(self.session.partitions.values()), by_id)
        return response

    def _hear(self, response: FetchResponse) -> bool:
        return self.session.handle_response(response, list(self.session.rows(response)))

    def _fetched(self) -> dict[object, tuple[int, int]]:
        return {
            key: (one.asked.fetch_offset, one.asked.current_leader_epoch)
            for key, one in self.broker.fetched.items()
        }

    def _asked(self, ones: Sequence[PartitionFetch], by_id: bool) -> dict[object, tuple[int, int]]:
        return {
            ((one.topic_id if by_id else one.tp.topic), one.tp.partition): (
                one.offset,
                -1 if one.leader_epoch is None else one.leader_epoch,
            )
            for one in ones
        }


TestSessions = pytest.mark.spec("I-19", "B.10.14")(Sessions.TestCase)
TestSessions.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


@pytest.mark.spec("D-70", "B.10.14")
def test_after_the_last_epoch_comes_1() -> None:
    session, broker = FetchSession(), BrokerSessions()
    wanted = {PARTITIONS[0]: PartitionFetch(PARTITIONS[0], 0, None, None, 1)}
    epochs = []
    for turn in range(5):
        step = session.next_request(wanted)
        epochs.append(step.epoch)
        response = broker.handle(build_request(step, 1000, CONFIG), 12)
        assert session.handle_response(response, list(session.rows(response)))
        if turn == 1:
            (theirs,) = broker.sessions.open.values()
            session.epoch = theirs.epoch = MAX_EPOCH
    assert epochs == [0, 1, 2**31 - 1, 1, 2]
