"""What a stream does when the log is not what it was: it fails and says so, or goes on and says what is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import DataLossError
from kclient.spark.ranges import fatal_losses, tolerated
from tests.spark.stream_driver import Query, fill, reader_of

pytestmark = [pytest.mark.kafka_cluster(brokers=2, topics={"t": 2}), pytest.mark.timeout(60)]

TOLERANT = {"failOnDataLoss": "false"}
Harm = Callable[[EmbeddedCluster], Any]


def recreate(kafka: EmbeddedCluster) -> None:
    kafka.recreate_topic("t")
    fill(kafka, 70, 3)


HARMS: dict[str, tuple[str, Harm]] = {
    "aged out": ("START_OFFSET_RESET", lambda kafka: (fill(kafka, 20), kafka.delete_records("t", 0, 60))),
    "truncated": ("PARTITION_OFFSET_CHANGED", lambda kafka: kafka.truncate("t", 0, 30)),
    "deleted": ("PARTITIONS_DELETED", lambda kafka: kafka.delete_topic("t")),
    "made anew": ("TOPIC_RECREATED", recreate),
}


def after_50(kafka: EmbeddedCluster, **options: str) -> Query:
    """A query that has read 50 records of partition 0, ten at a time on the broker."""
    query = Query(reader_of(kafka, fetchOffset__numRetries="1", **options))
    for _ in range(5):
        fill(kafka, 10)
    assert len(query.trigger() or []) == 50
    return query


@pytest.mark.spec("SP-57", "SP-58", "ST-05", "I-21")
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("old", [False, True])
def test_it_fails_and_says_what_is_lost(kafka: EmbeddedCluster, harm: str, old: bool) -> None:
    kind, do = HARMS[harm]
    query = after_50(kafka)
    query.old = old
    do(kafka)
    with pytest.raises(DataLossError) as caught:
        query.trigger()
    assert caught.value.kind == kind
    assert "failOnDataLoss" in str(caught.value)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("harm", "is_table"), [("truncated", True), ("made anew", True), ("made anew", False)]
)
def test_a_job_of_ingest_does_not_go_on_where_offsets_come_again(
    kafka: EmbeddedCluster, harm: str, *, is_table: bool, old: bool
) -> None:
    kind, do = HARMS[harm]
    query = after_50(kafka, **TOLERANT)
    query.old = old
    stream = query.reader._stream
    stream._options = attrs.evolve(stream._options, fatal_losses=fatal_losses(is_table=is_table))
    do(kafka)
    with pytest.raises(DataLossError, match="The offsets of this job come again") as caught:
        query.trigger()
    assert caught.value.kind == kind


@pytest.mark.spec("SP-57", "ST-05", "I-21")
@pytest.mark.parametrize(
    ("harm", "ends", "offsets"),
    [
        ("aged out", [{"0": 70, "1": 0}], [*range(60, 70)]),
        ("truncated", [{"0": 30, "1": 0}], []),
        ("made anew", [{"0": 0, "1": 0}, {"0": 70, "1": 3}], [*range(70), *range(3)]),
    ],
)
def test_it_continues_without_what_is_lost(
    kafka: EmbeddedCluster, caplog: pytest.LogCaptureFixture, harm: str, ends: list[Any], offsets: list[int]
) -> None:
    kind, do = HARMS[harm]
    query = after_50(kafka, **TOLERANT)
    query.rows.clear()
    before = tolerated[kind]
    do(kafka)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        query.drain()
    assert [end["t"] for end in query.log[2:]] == ends
    assert [offset for _, offset in query.rows] == offsets
    logged = [record.getMessage() for record in caplog.records if kind in record.getMessage()]
    assert len(logged) == tolerated[kind] - before >= 1
    assert len(logged) == len(set(logged))
    fill(kafka, 4)
    assert len(query.trigger() or []) == 4


@pytest.mark.spec("SP-09", "SP-57", "I-21")
@pytest.mark.parametrize(
    ("harm", "offsets"),
    [("aged out", [*range(60, 70)]), ("truncated", []), ("made anew", [*range(70), *range(3)])],
)
def test_so_it_does_where_spark_is_old(kafka: EmbeddedCluster, harm: str, offsets: list[int]) -> None:
    query = after_50(kafka, **TOLERANT)
    query.rows.clear()
    query.old = True
    HARMS[harm][1](kafka)
    query.drain()
    assert [offset for _, offset in query.rows] == offsets
    fill(kafka, 4)
    assert len(query.trigger() or []) == 4


@pytest.mark.spec("SP-57")
@pytest.mark.kafka_cluster(brokers=2, topics={"t": 2, "other": 1})
def test_a_topic_that_is_gone_is_dropped(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka, "t,other", fetchOffset__numRetries="1", **TOLERANT))
    fill(kafka, 5, 5)
    query.trigger()
    kafka.delete_topic("other")
    fill(kafka, 1)
    assert query.trigger() == [(0, 5)]
    assert query.log[-1] == {"t": {"0": 6, "1": 5}}
    kafka.create_topic("other", 1)
    fill(kafka, 2, topic="other")
    assert query.trigger() == [(0, 0), (0, 1)]


@pytest.mark.spec("SP-24", "SP-57")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 1, "other": 1})
@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_topic_that_goes_between_two_questions(kafka: EmbeddedCluster, fail: str) -> None:
    """A broker whose metadata are old still names it, its leader does not know it any more."""
    options = {"kafka.default.api.timeout.ms": "8000", "fetchOffset.numRetries": "1", "failOnDataLoss": fail}
    query, responses = Query(reader_of(kafka, "t,other", **options)), []
    fill(kafka, 5)

    def remember(request: Any, answer: Any) -> Any:
        responses.append(deepcopy(answer))
        return answer

    kafka.on("Metadata", remember, times=1)
    query.trigger()
    kafka.delete_topic("other")
    fill(kafka, 1)
    kafka.on("Metadata", lambda request, answer: responses[0], times=1)
    if fail == "true":
        with pytest.raises(DataLossError) as caught:
            query.trigger()
        assert caught.value.kind == "PARTITIONS_DELETED"
    else:
        assert query.trigger() == [(0, 5)]
        assert query.log[-1] == {"t": {"0": 6}}


@pytest.mark.spec("SP-50", "SP-57")
def test_a_new_partition_that_has_lost_its_beginning(kafka: EmbeddedCluster) -> None:
    strict, tolerant = after_50(kafka), Query(reader_of(kafka, **TOLERANT))
    tolerant.trigger()
    kafka.add_partitions("t", 3)
    for _ in range(2):
        kafka.produce("t", [b"x"] * 10, partition=2)
    kafka.delete_records("t", 2, 10)
    with pytest.raises(DataLossError) as caught:
        strict.trigger()
    assert caught.value.kind == "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"
    assert tolerant.trigger() == [(2, offset) for offset in range(10, 20)]


def tell_less(request: Any, answer: Any) -> Any:
    """As a broker that lags behind."""
    for part in (part for topic in answer.topics for part in topic.partitions):
        part.offset = min(part.offset, 40)
    return answer


@pytest.mark.spec("SP-51")
@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stale_response_is_no_loss(kafka: EmbeddedCluster, fail: str) -> None:
    query = after_50(kafka, failOnDataLoss=fail)
    kafka.on("ListOffsets", tell_less, times=4)  # the beginning and the end, of both leaders
    assert query.trigger() is None
    fill(kafka, 5)
    assert query.trigger() == [(0, offset) for offset in range(50, 55)]


@pytest.mark.spec("SP-09", "SP-51")
@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stale_response_after_a_restart_is_no_loss_if_spark_does_not_report_what_was_read(
    kafka: EmbeddedCluster, fail: str
) -> None:
    query = after_50(kafka)
    again = Query(reader_of(kafka, failOnDataLoss=fail), query.log, 1, old=True)
    kafka.on("ListOffsets", tell_less, times=4)  # the beginning and the end, of both leaders
    assert again.trigger() is None
    fill(kafka, 5)
    assert again.trigger() == [(0, offset) for offset in range(50, 55)]


@pytest.mark.spec("SP-51", "SP-52")
def test_a_stale_response_does_not_drain_what_was_not_read(kafka: EmbeddedCluster) -> None:
    query = after_50(kafka)
    fill(kafka, 5)
    again = Query(reader_of(kafka), query.log, 1)
    kafka.on("ListOffsets", tell_less, times=4)  # the beginning and the end, of both leaders
    again.reader.prepareForTriggerAvailableNow()
    assert again.drain() == [5]
    fill(kafka, 5)
    assert again.drain() == []  # what comes later is not read


@pytest.mark.spec("SP-56", "SP-57")
def test_a_logged_batch_whose_records_are_gone(kafka: EmbeddedCluster) -> None:
    query = after_50(kafka)
    kafka.truncate("t", 0, 30)
    retries = {"fetchOffset__numRetries": "1"}
    with pytest.raises(DataLossError, match="up to 50, the log ends at 30") as caught:
        Query(reader_of(kafka, **retries), list(query.log)).run()
    assert caught.value.kind == "COULD_NOT_READ_OFFSET_RANGE"
    assert len(Query(reader_of(kafka, **retries, **TOLERANT), list(query.log)).run()) == 30


@pytest.mark.spec("SP-57")
def test_a_loss_under_available_now_ends_too(kafka: EmbeddedCluster) -> None:
    query = after_50(kafka, **TOLERANT)
    again = Query(reader_of(kafka, fetchOffset__numRetries="1", **TOLERANT), query.log, 1)
    again.reader.prepareForTriggerAvailableNow()
    kafka.truncate("t", 0, 30)
    assert again.drain() == [0]
    assert again.log[-1]["t"]["0"] == 30
