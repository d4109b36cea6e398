"""The table of fetch sessions, row by row: what happened, and what the next request says."""

from __future__ import annotations

import pytest

from kclient.fetch.request import build_request
from kclient.fetch.session import FetchRequestData, FetchSession, PartitionFetch
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.types import TopicPartition
from tests.positions.fake_cluster import config

ID, NEW_ID = bytes(range(16)), bytes(range(16, 32))


def at(number: int, offset: int = 0, *, topic_id: bytes | None = ID, epoch: int = 5) -> PartitionFetch:
    return PartitionFetch(TopicPartition("orders", number), offset, epoch, topic_id, 1)


def response_of(*numbers: int, session_id: int = 7, topic_id: bytes = ID, **fields: int) -> FetchResponse:
    topic = FetchableTopicResponse(topic_id=topic_id)
    topic.partitions = [PartitionData(partition_index=number) for number in numbers]
    return FetchResponse(session_id=session_id, responses=[topic] if numbers else [], **fields)


def says(step: FetchRequestData) -> tuple[int, int, list[tuple[int, int]], list[int]]:
    """Session id, epoch, (partition, offset) of what is sent, what is forgotten."""
    sent = [(one.tp.partition, one.offset) for one in step.to_send]
    return step.session_id, step.epoch, sent, [one.tp.partition for one in step.to_forget]


def ask(session: FetchSession, *wanted: PartitionFetch, by_id: bool = True) -> FetchRequestData:
    return session.next_request({one.tp: one for one in wanted}, by_id=by_id)


def hear(session: FetchSession, response: FetchResponse) -> bool:
    return session.handle_response(response, list(session.rows(response)))


def established(*wanted: PartitionFetch) -> FetchSession:
    session = FetchSession()
    ask(session, *wanted)
    assert hear(session, response_of(*(one.tp.partition for one in wanted)))
    return session


def request_of(step: FetchRequestData) -> FetchRequest:
    return build_request(step, 1000, config())


@pytest.mark.spec("B.10.14")
def test_added_come_first_then_what_changed_in_the_order_of_the_session_and_the_rest_is_implied() -> None:
    session = FetchSession()
    assert says(ask(session, at(3), at(1), at(0), at(2))) == (0, 0, [(3, 0), (1, 0), (0, 0), (2, 0)], [])
    assert hear(session, response_of(0, 1, 2, 3))
    assert says(ask(session, at(2, 8), at(5), at(1), at(4), at(3, epoch=6))) == (
        7,
        1,
        [(5, 0), (4, 0), (3, 0), (2, 8)],
        [0],
    )
    assert hear(session, response_of())
    assert says(ask(session, at(2, 8), at(5), at(1), at(4), at(3, epoch=6))) == (7, 2, [], [])
    assert [tp.partition for tp in session.partitions] == [3, 1, 2, 5, 4]


@pytest.mark.spec("B.10.14", "D-25")
def test_a_topic_that_was_recreated_is_forgotten_by_its_old_id_and_asked_for_by_the_new_one() -> None:
    session = established(at(0), at(1))
    step = ask(session, at(0, topic_id=NEW_ID), at(1, topic_id=NEW_ID))
    request = request_of(step)
    assert [(t.topic_id, [p.partition for p in t.partitions]) for t in request.topics] == [(NEW_ID, [0, 1])]
    assert [(t.topic_id, t.partitions) for t in request.forgotten_topics_data] == [(ID, [0, 1])]
    assert not hear(session, response_of(0))  # rows of the old topic are not of this session any more


@pytest.mark.spec("B.10.13", "B.10.14", "D-47")
@pytest.mark.parametrize("ids_first", [True, False])
def test_between_ids_and_names_the_session_begins_again(ids_first: bool) -> None:
    session = FetchSession()
    ask(session, at(0), by_id=ids_first)
    assert hear(session, response_of(0))
    assert says(ask(session, at(0), by_id=not ids_first)) == (7, 0, [(0, 0)], [])


@pytest.mark.spec("B.10.13", "D-47")
@pytest.mark.parametrize("news", [None, (TopicPartition("orders", 1),)])
def test_one_partition_without_a_topic_id_makes_the_whole_request_go_by_name(
    news: tuple[TopicPartition, ...] | None,
) -> None:
    session = established(at(0))
    wanted = {one.tp: one for one in (at(0), at(1, topic_id=None))}
    step = session.next_request(wanted, news, by_id=True)
    assert (step.by_id, says(step)) == (False, (7, 0, [(0, 0), (1, 0)], []))


@pytest.mark.spec("B.10.14")
@pytest.mark.parametrize(
    ("response", "next_one"),
    [
        (response_of(session_id=0, error_code=70), (0, 0)),
        (response_of(session_id=0, error_code=71), (7, 0)),
        (response_of(session_id=0, error_code=106), (7, 0)),
        (response_of(session_id=0, error_code=-1), (7, 0)),
        (response_of(error_code=31), (7, 0)),
        (response_of(2), (7, 0)),
        (response_of(0, 2), (7, 0)),
        (response_of(0, 0), (7, 0)),
        (response_of(0, topic_id=NEW_ID), (7, 0)),
        (response_of(0, session_id=8), (7, 0)),
        (response_of(session_id=0), (0, 0)),
        (response_of(0, 1, session_id=0), (0, 0)),
        (response_of(), (7, 2)),
        (response_of(throttle_time_ms=50), (7, 2)),
        (response_of(1), (7, 2)),
        (response_of(1, 0), (7, 2)),
        (None, (7, 0)),
    ],
)
def test_what_follows_a_response_to_an_incremental_request(
    response: FetchResponse | None, next_one: tuple[int, int]
) -> None:
    session = established(at(0), at(1))
    ask(session, at(0), at(1))
    if response is not None:
        usable = next_one == (7, 2) or (not response.error_code and next_one == (0, 0))
        assert hear(session, response) is usable
    everything = [(0, 3), (1, 4)]
    sent = everything if next_one[1] == 0 else [(0, 3)]
    now = [at(0, 3), at(1, 4 if next_one[1] == 0 else 0)]
    assert says(ask(session, *now)) == (*next_one, sent, [])


@pytest.mark.spec("B.10.14", "D-70")
@pytest.mark.parametrize(
    ("response", "next_one"),
    [
        (response_of(0, 1), (7, 1)),
        (response_of(1, 0), (7, 1)),
        (response_of(0, 1, session_id=0), (0, 0)),
        (response_of(0), (0, 0)),
        (response_of(0, 1, 2), (0, 0)),
        (response_of(0, 1, 1), (0, 0)),
        (response_of(0, 0), (0, 0)),
        (response_of(0, 1, topic_id=NEW_ID), (0, 0)),
        (response_of(session_id=0, throttle_time_ms=50), (0, 0)),
        (response_of(session_id=0, error_code=70), (0, 0)),
        (response_of(session_id=0, error_code=106), (0, 0)),
        (None, (0, 0)),
    ],
)
def test_what_follows_a_response_to_a_full_request(
    response: FetchResponse | None, next_one: tuple[int, int]
) -> None:
    session = FetchSession()
    ask(session, at(0), at(1))
    if response is not None:
        numbers = sorted(p.partition_index for t in response.responses for p in t.partitions)
        known = all(t.topic_id == ID for t in response.responses)
        assert hear(session, response) is (numbers == [0, 1] and known)
    step = ask(session, at(0), at(1))
    assert (step.session_id, step.epoch) == next_one


@pytest.mark.spec("B.10.14", "B.18")
def test_the_last_request_names_the_session_and_nothing_else() -> None:
    session = established(at(0), at(1))
    step = session.close_request()
    assert step is not None
    request = request_of(step)
    assert (request.session_id, request.session_epoch) == (7, -1)
    assert (request.topics, request.forgotten_topics_data) == ([], [])
    assert session.close_request() is None
    assert FetchSession().close_request() is None


@pytest.mark.spec("B.10.14", "I-19")
def test_a_request_that_was_given_up_leaves_a_full_one_that_ends_the_old_session() -> None:
    """As after a cancellation: `accepts` was not called."""
    session = established(at(0), at(1))
    ask(session, at(0, 5), at(2))
    assert says(ask(session, at(0, 5), at(2))) == (7, 0, [(0, 5), (2, 0)], [])


@pytest.mark.spec("I-19")
def test_a_response_finds_what_was_asked_last_though_the_wire_did_not_repeat_it() -> None:
    """A seek away and back: the same on the wire, but not the same partition state any more."""
    session = established(at(0), at(1))
    again = PartitionFetch(TopicPartition("orders", 0), 0, 5, ID, position_version=9)
    assert says(ask(session, again, at(1))) == (7, 1, [], [])
    response = response_of(0)
    ((asked, _),) = session.rows(response)
    assert asked is again


@pytest.mark.spec("B.10.14")
def test_a_session_that_lives_longer_than_its_topics_keeps_nothing_of_them() -> None:
    """A subscription by pattern may see topics come and go for months."""
    session = established(at(0))
    for number in range(1, 200):
        ask(session, at(0, topic_id=number.to_bytes(16)))
        assert hear(session, response_of())
    assert len(session.partitions) == len(session._topic_names) == 1
