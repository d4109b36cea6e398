"""Fetch sessions (KIP-227): what the broker remembers between two fetches."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.protocol import errors
from tests.conformance.fetching import SESSIONS, base_offsets, fetch
from tests.conformance.target import Target

pytestmark = pytest.mark.api("Fetch", SESSIONS, few=True)

INT32_MAX = 2**31 - 1


class Session:
    """The reader's side: the next fetch has the next epoch."""

    def __init__(self, target: Target, version: int, offsets: dict[str, int]) -> None:
        self.target, self.version = target, version
        self.answer = fetch(target, version, offsets, session_id=0, session_epoch=0)
        assert (self.answer.error_code, self.answer.session_id > 0) == (errors.NONE, True)
        self.session_id, self.epoch = self.answer.session_id, 0

    def next(self, offsets: dict[str, int] | None = None, **fields: Any) -> Any:
        """An incremental fetch with the next epoch, or the one given."""
        self.epoch = fields.pop("session_epoch", self.epoch + 1)
        session = {"session_id": self.session_id, "session_epoch": self.epoch}
        return fetch(self.target, self.version, offsets or {}, **{**session, **fields})


def partition_count(response: Any) -> int:
    """How many partitions a response speaks of."""
    return sum(len(topic.partitions) for topic in response.responses)


@pytest.mark.spec("B.10.14")
def test_an_incremental_response_holds_only_what_changed(target: Target, version: int) -> None:
    first, second = target.topic(), target.topic()
    session = Session(target, version, {first: 0, second: 0})
    assert partition_count(session.answer) == 2
    response = session.next()
    assert (response.error_code, response.session_id, response.responses) == (
        errors.NONE,
        session.session_id,
        [],
    )
    target.produce(second, b"0")
    response = session.next()
    [row] = response.responses[0].partitions
    assert (partition_count(response), base_offsets(row), row.high_watermark) == (1, [0], 1)
    assert partition_count(session.next({second: 1})) == 0


@pytest.mark.spec("B.10.14")
def test_what_is_not_read_is_sent_again(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0")
    session = Session(target, version, {topic: 0})
    for _ in range(2):
        [row] = session.next().responses[0].partitions
        assert base_offsets(row) == [0]


@pytest.mark.spec("B.10.14")
def test_partitions_are_added_and_forgotten(target: Target, version: int) -> None:
    first, second = target.topic(), target.topic()
    for topic in (first, second):
        target.produce(topic, b"0")
    session = Session(target, version, {first: 0})
    assert partition_count(session.next({second: 0})) == 2
    assert partition_count(session.next(forgotten=[first])) == 1
    assert partition_count(session.next()) == 1


@pytest.mark.spec("B.10.14")
def test_an_error_is_repeated_until_it_is_over(target: Target, topic: str, version: int) -> None:
    session = Session(target, version, {topic: 5})
    for _ in range(2):
        [row] = session.next().responses[0].partitions
        assert row.error_code == errors.OFFSET_OUT_OF_RANGE
    assert partition_count(session.next({topic: 0})) in (0, 1)
    assert partition_count(session.next()) == 0


@pytest.mark.spec("B.10.14")
def test_an_unknown_session(target: Target, topic: str, version: int) -> None:
    response = fetch(target, version, {topic: 0}, session_id=12345, session_epoch=1)
    expected = (errors.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    assert (response.error_code, response.session_id, response.responses) == expected


@pytest.mark.spec("B.10.14")
@pytest.mark.parametrize("epoch", [2, 5])
def test_an_epoch_out_of_order(target: Target, topic: str, version: int, epoch: int) -> None:
    session = Session(target, version, {topic: 0})
    response = session.next(session_epoch=epoch)
    expected = (errors.INVALID_FETCH_SESSION_EPOCH, [])
    assert (response.error_code, response.responses) == expected
    assert session.next(session_epoch=1).error_code == errors.NONE
    assert session.next(session_epoch=1).error_code == errors.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.spec("B.10.14")
def test_the_final_epoch_closes_the_session(target: Target, topic: str, version: int) -> None:
    session = Session(target, version, {topic: 0})
    response = session.next(session_epoch=-1)
    assert (response.error_code, response.session_id) == (errors.NONE, 0)
    assert session.next(session_epoch=1).error_code == errors.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.spec("B.10.14")
def test_epoch_0_with_an_id_replaces_the_session(target: Target, topic: str, version: int) -> None:
    session = Session(target, version, {topic: 0})
    response = fetch(target, version, {topic: 0}, session_id=session.session_id, session_epoch=0)
    assert (response.error_code, partition_count(response)) == (errors.NONE, 1)
    assert response.session_id not in (0, session.session_id)
    assert session.next().error_code == errors.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.spec("B.10.14")
def test_without_a_session_nothing_is_remembered(target: Target, topic: str, version: int) -> None:
    response = fetch(target, version, {topic: 0}, session_id=0, session_epoch=-1)
    assert (response.error_code, response.session_id, partition_count(response)) == (errors.NONE, 0, 1)


@pytest.mark.spec("B.10.14")
def test_a_first_fetch_of_nothing_gets_no_session_of_use(target: Target, version: int) -> None:
    response = fetch(target, version, {}, session_id=0, session_epoch=0)
    assert (response.error_code, response.responses) == (errors.NONE, [])


@pytest.mark.spec("B.10.14")
def test_a_negative_epoch_other_than_the_final_one(target: Target, topic: str, version: int) -> None:
    session = Session(target, version, {topic: 0})
    response = session.next(session_epoch=INT32_MAX)
    assert response.error_code == errors.INVALID_FETCH_SESSION_EPOCH
