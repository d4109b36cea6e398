"""Transactions: producer ids and epochs, what a reader sees before and after the end, offsets in a transaction."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient.generated.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kclient.generated.fetch_response import AbortedTransaction
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.protocol import errors
from kclient.records.batch import read_batches
from tests.conformance.classic import Member
from tests.conformance.consumer import Member as ConsumerMember
from tests.conformance.fetching import base_offsets, fetch_one
from tests.conformance.offsets import NOTHING, Committed, committed
from tests.conformance.target import Target, eventually, fresh
from tests.conformance.test_list_offsets import LATEST, found
from tests.conformance.transactions import TRANSACTION, Producer

READ_COMMITTED = 1
FENCED = 2  # first version of the transaction APIs with PRODUCER_FENCED
UNSTABLE = Committed(-1, -1, "", errors.UNSTABLE_OFFSET_COMMIT)


def fenced(version: int) -> int:
    """How a version says that another producer took over."""
    return errors.PRODUCER_FENCED if version >= FENCED else errors.INVALID_PRODUCER_EPOCH


# --- producer ids


@pytest.mark.api("InitProducerId")
def test_a_producer_without_transactions_gets_a_new_id_each_time(target: Target, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def answer() -> Any:
        return eventually(lambda: target.ask(request, version), lambda one: one.error_code == errors.NONE)

    first, second = answer(), answer()
    assert (first.producer_epoch, second.producer_epoch) == (0, 0)
    assert 0 <= first.producer_id != second.producer_id


@pytest.mark.api("InitProducerId")
def test_a_transactional_producer_keeps_its_id_and_grows_its_epoch(target: Target, version: int) -> None:
    producer = Producer(target)
    first, second = producer.init(version), producer.init(version)
    assert (first.error_code, first.producer_epoch) == (errors.NONE, 0)
    assert (second.error_code, second.producer_id, second.producer_epoch) == (
        errors.NONE,
        first.producer_id,
        1,
    )


@pytest.mark.api("InitProducerId")
def test_an_empty_transactional_id_is_refused(target: Target, version: int) -> None:
    response = Producer(target).init(version, transactional_id="")
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        errors.INVALID_REQUEST,
        -1,
        -1,
    )


@pytest.mark.api("InitProducerId")
@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_outside_the_bounds_is_refused(
    target: Target, version: int, timeout_ms: int
) -> None:
    response = Producer(target, timeout_ms=timeout_ms).init(version)
    expected = (errors.INVALID_TRANSACTION_TIMEOUT, -1, -1)
    assert (response.error_code, response.producer_id, response.producer_epoch) == expected


@pytest.mark.api("InitProducerId", 3)
def test_a_producer_may_grow_its_own_epoch(target: Target, version: int) -> None:
    producer = Producer(target).begun()
    mine = {"producer_id": producer.producer_id, "producer_epoch": 0}
    again = producer.init(version, **mine)
    assert (again.error_code, again.producer_epoch) == (errors.NONE, 1)
    retried = producer.init(version, **mine)  # the response was lost
    assert (retried.error_code, retried.producer_epoch) == (errors.NONE, 1)


@pytest.mark.api("InitProducerId", 3)
def test_an_old_or_strange_producer_is_fenced(target: Target, version: int) -> None:
    producer = Producer(target).begun()
    old = {"producer_id": producer.producer_id, "producer_epoch": 0}
    for _ in range(2):
        producer.begun()
    code = errors.PRODUCER_FENCED if version >= 4 else errors.INVALID_PRODUCER_EPOCH
    assert producer.init(version, **old).error_code == code
    strange = {"producer_id": producer.producer_id + 5000, "producer_epoch": producer.epoch}
    assert producer.init(version, **strange).error_code == code


# --- what readers see


def seen(target: Target, topic: str, offset: int = 0, isolation_level: int = READ_COMMITTED) -> Any:
    """What Fetch says of partition 0."""
    return fetch_one(target, target.newest("Fetch"), topic, offset, isolation_level=isolation_level)


@pytest.mark.spec("S0-51")
def test_an_open_transaction_is_hidden_from_read_committed(target: Target, topic: str) -> None:
    producer = Producer(target).begun()
    now = [int(time.time() * 1000)]
    target.produce(topic, b"before", timestamps=now)
    producer.write(topic, b"in", b"it")
    target.produce(topic, b"behind", timestamps=now)
    row = seen(target, topic)
    assert (row.high_watermark, row.last_stable_offset, base_offsets(row)) == (4, 1, [0])
    assert base_offsets(seen(target, topic, isolation_level=0)) == [0, 1, 3]
    newest = target.newest("ListOffsets")
    assert found(target, newest, topic, LATEST, isolation_level=READ_COMMITTED)[2] == 1
    assert found(target, newest, topic, LATEST)[2] == 4
    assert producer.end(True) == errors.NONE
    stable = eventually(lambda: seen(target, topic), lambda row: row.last_stable_offset == 5)
    assert base_offsets(stable) == [0, 1, 3, 4]


@pytest.mark.spec("B.12")
@pytest.mark.parametrize("committed", [True, False])
def test_the_end_is_a_marker_and_an_abort_is_listed(target: Target, topic: str, committed: bool) -> None:
    producer = Producer(target).begun()
    producer.write(topic, b"0", b"1")
    assert producer.end(committed) == errors.NONE
    row = eventually(lambda: seen(target, topic), lambda row: row.last_stable_offset == 3)
    data, marker = read_batches(bytes(row.records))
    assert (data.is_transactional, data.is_control) == (True, False)
    assert (marker.is_transactional, marker.is_control, marker.base_offset) == (True, True, 2)
    assert (marker.producer_id, marker.base_sequence) == (producer.producer_id, -1)
    aborted = [] if committed else [AbortedTransaction(producer_id=producer.producer_id, first_offset=0)]
    assert (row.aborted_transactions or []) == aborted
    assert not seen(target, topic, isolation_level=0).aborted_transactions


@pytest.mark.spec("B.12")
def test_the_end_of_nothing_writes_nothing(target: Target, topic: str) -> None:
    producer = Producer(target).begun()
    assert producer.add(topic) == {0: errors.NONE}
    assert producer.end(False) == errors.NONE
    assert (
        eventually(lambda: seen(target, topic), lambda row: row.high_watermark == 1).last_stable_offset == 1
    )


def test_a_successor_aborts_what_its_predecessor_left_open(target: Target, topic: str) -> None:
    name = fresh("transaction")
    before = Producer(target, name).begun()
    before.write(topic, b"0")
    after = Producer(target, name).begun()
    row = eventually(
        lambda: seen(target, topic), lambda row: row.last_stable_offset == row.high_watermark == 2
    )
    assert len(row.aborted_transactions) == 1
    assert after.epoch > before.epoch
    assert before.send(topic, b"1") == errors.INVALID_PRODUCER_EPOCH
    assert before.end(True) == errors.PRODUCER_FENCED


def test_a_transaction_that_lasts_too_long_is_aborted(target: Target, topic: str) -> None:
    producer = Producer(target, timeout_ms=3_000).begun()
    producer.write(topic, b"0")
    row = eventually(lambda: seen(target, topic), lambda row: row.last_stable_offset == 2)
    assert len(row.aborted_transactions) == 1
    assert producer.end(True) in (
        errors.PRODUCER_FENCED,
        errors.INVALID_PRODUCER_EPOCH,
        errors.INVALID_TXN_STATE,
    )


# --- who may do what


@pytest.mark.api("AddPartitionsToTxn")
def test_partitions_are_added_all_or_none(target: Target, version: int) -> None:
    if version > 3:
        return  # brokers' own
    topic = target.topic(partitions=2)
    producer = Producer(target).begun()
    assert producer.add(topic, 0, 1, version=version) == {0: errors.NONE, 1: errors.NONE}
    assert producer.add(topic, 0, 5, version=version) == {
        0: errors.OPERATION_NOT_ATTEMPTED,
        5: errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    missing = {"v3_and_below_topics": [AddPartitionsToTxnTopic(name="no-such-topic", partitions=[0])]}
    assert producer.add(topic, version=version, **missing) == {0: errors.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.api("AddPartitionsToTxn")
def test_only_the_current_producer_adds_partitions(target: Target, topic: str, version: int) -> None:
    if version > 3:
        return
    producer = Producer(target).begun()
    mapping = errors.INVALID_PRODUCER_ID_MAPPING
    strange = {"v3_and_below_producer_id": producer.producer_id + 5000}
    assert producer.add(topic, version=version, **strange) == {0: mapping}
    epoch = {"v3_and_below_producer_epoch": producer.epoch + 1}
    assert producer.add(topic, version=version, **epoch) == {0: fenced(version)}
    stranger = {"v3_and_below_transactional_id": target.coordinated(fresh("transaction"), TRANSACTION)}
    assert producer.add(topic, version=version, **stranger) == {0: mapping}


@pytest.mark.api("EndTxn")
def test_only_the_current_producer_ends_its_transaction(target: Target, topic: str, version: int) -> None:
    producer = Producer(target).begun()
    producer.write(topic, b"0")
    mapping = errors.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(True, version, producer_id=producer.producer_id + 5000) == mapping
    assert producer.end(True, version, producer_epoch=producer.epoch + 1) == fenced(version)
    stranger = target.coordinated(fresh("transaction"), TRANSACTION)
    assert producer.end(True, version, transactional_id=stranger) == mapping
    assert producer.end(True, version) == errors.NONE


@pytest.mark.api("EndTxn")
def test_the_same_end_marker_again_is_accepted_and_the_other_is_not(
    target: Target, topic: str, version: int
) -> None:
    if version >= 5:
        return  # there the epoch is another one by then
    producer = Producer(target).begun()
    producer.write(topic, b"0")
    assert producer.end(True, version) == errors.NONE
    assert producer.end(True, version) == errors.NONE
    assert producer.end(False, version) == errors.INVALID_TXN_STATE


@pytest.mark.api("EndTxn")
def test_the_end_without_a_beginning(target: Target, version: int) -> None:
    producer = Producer(target).begun()
    assert producer.end(True, version) == errors.INVALID_TXN_STATE
    abort = producer.end(False, version)
    assert abort == (errors.NONE if version >= 5 else errors.INVALID_TXN_STATE)


@pytest.mark.api("EndTxn", 5)
def test_since_version_5_every_end_grows_the_epoch(target: Target, topic: str, version: int) -> None:
    producer = Producer(target).begun()
    before = producer.epoch
    producer.write(topic, b"0")
    assert producer.end(True, version) == errors.NONE
    assert producer.epoch == before + 1
    producer.write(topic, b"1")
    assert producer.end(False, version) == errors.NONE
    assert producer.epoch == before + 2


def test_a_partition_that_was_not_added_takes_no_transactional_records(target: Target, topic: str) -> None:
    producer = Producer(target).begun()
    code = producer.send(topic, b"0")
    if target.since("4.0"):
        assert code in (errors.INVALID_TXN_STATE, errors.TRANSACTION_ABORTABLE)
    else:
        assert code == errors.NONE  # the coordinator is not asked


# --- offsets


@pytest.mark.spec("S0-37")
@pytest.mark.api("TxnOffsetCommit")
def test_offsets_count_with_the_commit(target: Target, group: str, topic: str, version: int) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    assert producer.commit_offset(group, topic, 11, version, "note") == errors.NONE
    assert committed(target, group, topic) == NOTHING
    assert committed(target, group, topic, require_stable=True) == UNSTABLE
    assert producer.end(True) == errors.NONE
    stable = eventually(
        lambda: committed(target, group, topic, require_stable=True), lambda found: found != UNSTABLE
    )
    assert stable == Committed(11, -1, "note", errors.NONE)


@pytest.mark.spec("S0-37")
def test_offsets_of_an_aborted_transaction_never_count(target: Target, group: str, topic: str) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    assert producer.commit_offset(group, topic, 11) == errors.NONE
    assert producer.end(False) == errors.NONE
    stable = eventually(
        lambda: committed(target, group, topic, require_stable=True), lambda found: found != UNSTABLE
    )
    assert stable == NOTHING


@pytest.mark.api("AddOffsetsToTxn")
def test_only_the_current_producer_adds_offsets(target: Target, group: str, version: int) -> None:
    producer = Producer(target).begun()
    target.coordinated(group)
    mapping = errors.INVALID_PRODUCER_ID_MAPPING
    assert producer.add_offsets(group, version, producer_id=producer.producer_id + 5000) == mapping
    assert producer.add_offsets(group, version, producer_epoch=producer.epoch + 1) == fenced(version)
    assert producer.add_offsets(group, version) == errors.NONE


@pytest.mark.api("TxnOffsetCommit", 3)
def test_a_member_commits_in_its_generation(target: Target, group: str, topic: str, version: int) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    with Member(target, group) as member:
        member.settle()
        good = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
        for changes, code in (
            ({"generation_id_or_member_epoch": 2}, errors.ILLEGAL_GENERATION),
            ({"member_id": "nobody"}, errors.UNKNOWN_MEMBER_ID),
            ({}, errors.NONE),
        ):
            assert producer.commit_offset(group, topic, 3, version, **{**good, **changes}) == code


@pytest.mark.api("TxnOffsetCommit", 3)
def test_a_fenced_instance_commits_nothing(target: Target, group: str, topic: str, version: int) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    with Member(target, group, instance_id="a") as member:
        member.settle()
        other = {"generation_id_or_member_epoch": 1, "member_id": "nobody", "group_instance_id": "a"}
        assert producer.commit_offset(group, topic, 3, version, **other) == errors.FENCED_INSTANCE_ID


@pytest.mark.api("TxnOffsetCommit")
def test_offsets_in_a_transaction_are_checked_like_others(
    target: Target, group: str, topic: str, version: int
) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    large = producer.commit_offset(group, topic, 3, version, "m" * 4097)
    assert large == errors.OFFSET_METADATA_TOO_LARGE
    surrogates = "😀" * 2048  # each is two units of UTF-16, which are counted, and four bytes
    assert producer.commit_offset(group, topic, 3, version, surrogates) == errors.NONE
    assert producer.commit_offset(group, topic, 3, version, surrogates + "m") == large
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offset(group, topic, 3, version, partition=5) == unknown
    nowhere = errors.UNKNOWN_TOPIC_ID if version >= 6 else unknown
    assert producer.commit_offset(group, "no-such-topic", 3, version) == nowhere


@pytest.mark.since("4.0")
@pytest.mark.api("TxnOffsetCommit", 3)
def test_a_group_that_does_not_exist_has_no_generation(
    target: Target, group: str, topic: str, version: int
) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    member = {"generation_id_or_member_epoch": 1, "member_id": "nobody"}
    expected = errors.GROUP_ID_NOT_FOUND if version >= 6 else errors.ILLEGAL_GENERATION
    assert producer.commit_offset(group, topic, 3, version, **member) == expected


@pytest.mark.since("4.0")
@pytest.mark.api("TxnOffsetCommit", 3)
def test_a_member_epoch_that_is_not_the_members_is_stale(
    target: Target, group: str, topic: str, version: int
) -> None:
    producer = Producer(target).begun()
    assert producer.add_offsets(group) == errors.NONE
    member = ConsumerMember(target, group, "m")
    assert member.join(topic).error_code == errors.NONE
    ahead = {"generation_id_or_member_epoch": member.epoch + 1, "member_id": member.member_id}
    expected = errors.STALE_MEMBER_EPOCH if version >= 6 else errors.ILLEGAL_GENERATION
    assert producer.commit_offset(group, topic, 3, version, **ahead) == expected
    now = {"generation_id_or_member_epoch": member.epoch, "member_id": member.member_id}
    assert producer.commit_offset(group, topic, 3, version, **now) == errors.NONE
