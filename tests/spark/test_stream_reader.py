"""The stream reader against the embedded cluster, driven as Spark drives it: offsets, limits, restarts, round trips."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, PortClosedError, UnknownTopicError
from kclient.spark.options import SourceOptions
from kclient.spark.source import ReadAllAvailable, ReadMaxRows, ReadMinRows, check_version
from tests.spark.stream_driver import Query, commit, everything, fill, reader_of

pytestmark = [pytest.mark.kafka_cluster(brokers=2, topics={"t": 3}), pytest.mark.timeout(60)]


@pytest.mark.spec("SP-46", "I-21")
def test_each_record_comes_once(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka))
    fill(kafka, 30, 20)
    assert query.trigger() == everything(30, 20)
    assert query.trigger() is None
    fill(kafka, 1, 0, 2)
    assert query.trigger() == [(0, 30), (2, 0), (2, 1)]
    assert query.log == [
        {"t": {"0": 0, "1": 0, "2": 0}},
        {"t": {"0": 30, "1": 20, "2": 0}},
        {"t": {"0": 31, "1": 20, "2": 2}},
    ]


@pytest.mark.spec("SP-46", "SP-47")
def test_offsets_hold_nothing_but_what_the_source_for_the_jvm_reads(kafka: EmbeddedCluster) -> None:
    """Topic ids, leader epochs and groups stand elsewhere, as its parser is strict."""
    query = Query(reader_of(kafka, commit__group__id="g", maxOffsetsPerTrigger="7", failOnDataLoss="false"))
    fill(kafka, 4, 9, 1)
    query.drain()
    kafka.move_leader("t", 1)
    kafka.delete_records("t", 0, 2)
    fill(kafka, 3)
    query.drain()
    reported = [*query.log, query.reader.initialOffset(), query.reader.reportLatestOffset()]
    assert len(reported) > 4
    for offsets in reported:
        assert list(offsets) == ["t"]
        assert list(offsets["t"]) == ["0", "1", "2"]
        assert {type(offset) for offset in offsets["t"].values()} == {int}


@pytest.mark.spec("SP-46")
@pytest.mark.kafka_cluster(brokers=1, topics={"b": 12, "a": 1})
def test_partitions_are_reported_by_number(kafka: EmbeddedCluster) -> None:
    initial = reader_of(kafka, "b,a").initialOffset()
    assert json.dumps(initial) == json.dumps({"a": {"0": 0}, "b": {str(number): 0 for number in range(12)}})


# --- where it begins


@pytest.mark.spec("SP-18")
def test_latest_is_decided_once(kafka: EmbeddedCluster) -> None:
    reader = reader_of(kafka, startingOffsets="latest")
    fill(kafka, 5)
    assert reader.initialOffset() == {"t": {"0": 5, "1": 0, "2": 0}}
    fill(kafka, 5)
    assert reader.initialOffset() == {"t": {"0": 5, "1": 0, "2": 0}}


@pytest.mark.spec("SP-18")
def test_it_reports_that_latest_moved_after_the_first_batch(
    kafka: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The query died in its first batch; Spark asks again where it begins, and that is later now."""
    died = Query(reader_of(kafka, startingOffsets="latest"))
    died.start()
    fill(kafka, 5)
    logged = died.reader.latestOffset(died.log[0], died.reader.getDefaultReadLimit())
    fill(kafka, 3, 1)
    again = reader_of(kafka, startingOffsets="latest")
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert again.partitions(again.initialOffset(), logged) == []
    assert "t-0 (5 → 8)" in caplog.text
    assert "startingOffsets" in caplog.text
    assert again.latestOffset(logged, again.getDefaultReadLimit()) == {"t": {"0": 8, "1": 1, "2": 0}}


def test_the_ways_to_say_where_it_begins(kafka: EmbeddedCluster) -> None:
    kafka.produce("t", [b"x"] * 10, partition=0, timestamp_ms=1_000)
    kafka.produce("t", [b"x"] * 10, partition=0, timestamp_ms=2_000)
    assert reader_of(kafka).initialOffset()["t"] == {"0": 0, "1": 0, "2": 0}
    words = reader_of(kafka, startingOffsets='{"t": {"0": 7, "1": -2, "2": -1}}')
    assert words.initialOffset()["t"] == {"0": 7, "1": 0, "2": 0}
    some = reader_of(kafka, startingOffsets='{"t": {"1": 0}}', startingOffsets__fallback="latest")
    assert some.initialOffset()["t"] == {"0": 20, "1": 0, "2": 0}
    times = {"startingOffsetsByTimestampStrategy": "latest", "startingTimestamp": "1500"}
    assert reader_of(kafka, **times).initialOffset()["t"] == {"0": 10, "1": 0, "2": 0}


@pytest.mark.spec("SP-71")
def test_it_begins_where_a_group_has_committed(kafka: EmbeddedCluster) -> None:
    fill(kafka, 10, 10)
    reader = reader_of(
        kafka, startingOffsets="group", commit__group__id="g", startingOffsets__fallback="latest"
    )
    commit(kafka, "g", {0: 4})
    assert reader.initialOffset()["t"] == {"0": 4, "1": 10, "2": 0}
    strict = reader_of(kafka, startingOffsets="group", commit__group__id="g")
    with pytest.raises(ConfigError, match="finds no commit for t-1, t-2"):
        strict.initialOffset()


def test_a_new_query_of_a_topic_that_is_not_there(kafka: EmbeddedCluster) -> None:
    with pytest.raises(UnknownTopicError, match="Did you mean t"):
        reader_of(kafka, "tt", fetchOffset__numRetries="2").initialOffset()


def test_a_topic_that_is_about_to_be_made_is_waited_for(kafka: EmbeddedCluster) -> None:
    reader = reader_of(kafka, "soon", fetchOffset__numRetries="500")
    late = threading.Timer(0.3, kafka.create_topic, ("soon", 1))
    late.start()
    assert reader.initialOffset() == {"soon": {"0": 0}}
    late.join()


@pytest.mark.spec("SP-48")
@pytest.mark.parametrize("offset", [{"t": {"0": -1}}, {"t": [1]}, {"t": {"x": 1}}, "7"])
def test_a_checkpoint_of_something_else_is_refused(kafka: EmbeddedCluster, offset: Any) -> None:
    with pytest.raises(ConfigError, match="checkpoint's offset"):
        reader_of(kafka).latestOffset(offset, ReadAllAvailable())


# --- limits


@pytest.mark.spec("SP-22", "SP-52", "SP-53", "ST-12")
def test_available_now_reads_in_limited_batches_what_was_there(kafka: EmbeddedCluster) -> None:
    fill(kafka, 1500, 900, 600)
    query = Query(reader_of(kafka, maxOffsetsPerTrigger="1200"))
    query.reader.prepareForTriggerAvailableNow()
    fill(kafka, 100, 100, 100)
    kafka.add_partitions("t", 4)
    kafka.produce("t", [b"late"], partition=3)
    assert query.drain() == [1200, 1200, 600]
    assert sorted(query.rows) == everything(1500, 900, 600)
    again = Query(reader_of(kafka, maxOffsetsPerTrigger="1200"), query.log, query.committed)
    again.reader.prepareForTriggerAvailableNow()
    assert again.drain() == [301]


@pytest.mark.spec("SP-54", "ST-12")
def test_limits_as_spark_is_notified_of_them(kafka: EmbeddedCluster) -> None:
    assert reader_of(kafka).getDefaultReadLimit() == ReadAllAvailable()
    assert reader_of(kafka, maxOffsetsPerTrigger="7").getDefaultReadLimit() == ReadMaxRows(7)
    assert reader_of(kafka, minOffsetsPerTrigger="7").getDefaultReadLimit() == ReadMinRows(7)
    both = reader_of(kafka, minOffsetsPerTrigger="3", maxOffsetsPerTrigger="7")
    assert both.getDefaultReadLimit() == ReadMaxRows(7)


@pytest.mark.spec("SP-22", "SP-54")
def test_once_reads_everything_whatever_the_limit(kafka: EmbeddedCluster) -> None:
    fill(kafka, 100)
    query = Query(reader_of(kafka, maxOffsetsPerTrigger="10", minOffsetsPerTrigger="10"))
    assert query.trigger(ReadAllAvailable()) == everything(100)


@pytest.mark.spec("SP-54")
@pytest.mark.parametrize("more", [{}, {"maxOffsetsPerTrigger": "1000"}])
def test_a_minimum_waits_for_more_but_not_under_available_now(
    kafka: EmbeddedCluster, more: dict[str, str]
) -> None:
    query = Query(reader_of(kafka, minOffsetsPerTrigger="50", maxTriggerDelay="1h", **more))
    fill(kafka, 10)
    assert query.trigger() == everything(10)  # nothing to wait for: there was no batch before
    fill(kafka, 20, 29)
    assert query.trigger() is None
    fill(kafka, 1)
    assert len(query.trigger() or []) == 50
    fill(kafka, 1)
    assert query.trigger() is None
    query.reader.prepareForTriggerAvailableNow()
    assert query.drain() == [1]


@pytest.mark.spec("SP-54")
def test_a_minimum_waits_no_longer_than_the_delay(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka, minOffsetsPerTrigger="50", maxTriggerDelay="1ms"))
    fill(kafka, 10)
    assert query.trigger() == everything(10)
    fill(kafka, 1)
    assert query.trigger() == [(0, 10)]


@pytest.mark.spec("SP-01", "SP-96", "ST-21")
def test_an_older_spark_is_notified_that_it_keeps_no_limit(kafka: EmbeddedCluster) -> None:
    base = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t"}
    check_version(SourceOptions.parse(base, "stream"), knows_limits=False)
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"):
        limited = SourceOptions.parse({**base, name: "10"}, "stream")
        check_version(limited, knows_limits=True)
        with pytest.raises(ConfigError, match=r"need pyspark 4\.2"):
            check_version(limited, knows_limits=False)


@pytest.mark.spec("SP-09")
def test_an_older_spark_asks_without_arguments(kafka: EmbeddedCluster) -> None:
    fill(kafka, 3)
    reader = reader_of(kafka)
    start = reader.initialOffset()
    end = reader.latestOffset()
    assert end == {"t": {"0": 3, "1": 0, "2": 0}}
    (planned,) = reader.partitions(start, end)
    assert [row for batch in reader.read(planned) for row in batch.to_pylist()] == [
        {"partition": 0, "offset": offset} for offset in range(3)
    ]
    assert reader.partitions(end, end) == []


@pytest.mark.spec("SP-18", "SP-52")
def test_available_now_from_latest_reads_nothing(kafka: EmbeddedCluster) -> None:
    """Spark asks where to begin after it had the ends frozen; what came in between is for the next run."""
    fill(kafka, 10)
    query = Query(reader_of(kafka, startingOffsets="latest"))
    query.reader.prepareForTriggerAvailableNow()
    fill(kafka, 5)
    assert query.start()["t"]["0"] == 10
    assert query.drain() == []


# --- restarts


@pytest.mark.spec("SP-56", "I-21")
def test_a_logged_batch_is_planned_the_same_after_a_restart(kafka: EmbeddedCluster) -> None:
    fill(kafka, 100, 50)
    split = {"minPartitions": "5", "maxRecordsPerPartition": "40"}
    first = Query(reader_of(kafka, **split))
    first.trigger()
    fill(kafka, 30, 30)
    start, end = first.log
    again = reader_of(kafka, **split)
    planned = [one.value for one in first.reader.partitions(start, end)]
    assert [one.value for one in again.partitions(start, end)] == planned
    assert len(planned) == 5
    restarted = Query(again, list(first.log), committed=0)
    assert sorted(restarted.run()) == everything(100, 50)
    assert restarted.drain() == [60]


@pytest.mark.spec("SP-21", "ST-15")
def test_a_checkpoint_in_another_order_costs_one_empty_batch(kafka: EmbeddedCluster) -> None:
    """As the JVM source writes it: no spaces, partitions in any order."""
    fill(kafka, 30, 20, 10)
    query = Query(reader_of(kafka), [{"t": {"2": 0, "0": 0, "1": 0}}, {"t": {"2": 10, "1": 15, "0": 30}}], 1)
    fill(kafka, 0, 0, 0)
    assert query.trigger() == [(1, offset) for offset in range(15, 20)]
    assert query.trigger() is None
    still = Query(reader_of(kafka), [{"t": {"0": 0}}, {"t": {"2": 10, "0": 30, "1": 20}}], 1)
    assert still.drain() == [0]


@pytest.mark.spec("SP-50", "ST-12")
def test_a_new_partition_is_read_from_its_beginning(kafka: EmbeddedCluster) -> None:
    fill(kafka, 5)
    query = Query(reader_of(kafka, startingOffsets="latest"))
    assert query.trigger() is None
    kafka.add_partitions("t", 5)
    kafka.produce("t", [b"x"] * 4, partition=4)
    assert query.trigger() == [(4, offset) for offset in range(4)]


@pytest.mark.spec("SP-50")
def test_a_pattern_finds_topics_that_appear(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka, subscribePattern="^new-"))
    assert query.start() == {}
    assert query.trigger() is None
    kafka.create_topic("new-1", 2)
    fill(kafka, 3, 2, topic="new-1")
    assert query.trigger() == everything(3, 2)


@pytest.mark.spec("SP-49", "ST-19")
def test_stable_ends_under_read_committed(kafka: EmbeddedCluster) -> None:
    from confluent_kafka import Producer

    def producer(name: str) -> Producer:
        made = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
        made.init_transactions(20)
        return made

    def begin(made: Producer, value: bytes) -> None:
        made.begin_transaction()
        for _ in range(5):
            made.produce("t", value, partition=0)
        made.flush(20)

    done, aborted, still_open = producer("a"), producer("b"), producer("c")
    options = {"kafka__isolation__level": "read_committed"}
    query, everyone = Query(reader_of(kafka, **options)), Query(reader_of(kafka))
    begin(done, b"yes")
    begin(aborted, b"no")
    begin(still_open, b"later")
    done.commit_transaction(20)
    aborted.abort_transaction(20)
    begin(done, b"behind an open one")
    done.commit_transaction(20)
    assert query.trigger() == [(0, offset) for offset in range(5)]
    assert query.log[-1]["t"]["0"] == 10  # the first offset of the open transaction
    assert query.trigger() is None
    assert len(everyone.trigger() or []) == 20
    still_open.commit_transaction(20)
    assert query.drain() == [10]
    assert len(query.rows) == len(set(query.rows)) == 15


# --- what it costs, and what it survives


@pytest.mark.spec("SG-06", "SP-52")
def test_a_batch_costs_three_round_trips(kafka: EmbeddedCluster) -> None:
    reader = reader_of(kafka, commit__group__id="g")
    query = Query(reader)
    for _ in range(2):
        fill(kafka, 5, 5)
        query.trigger()
    fill(kafka, 5, 5)
    kafka.forget_requests()
    end = reader.latestOffset(query.log[-1], ReadAllAvailable())
    assert reader.reportLatestOffset() == end
    reader.commit(query.log[-1])
    reader.partitions(query.log[-1], end)
    asked = Counter(request.api for request in kafka.requests if request.client_id.endswith("-driver"))
    leaders = {kafka.leader_of("t", partition) for partition in range(3)}
    assert asked == {"Metadata": 1, "ListOffsets": 2 * len(leaders), "OffsetCommit": 1}


@pytest.mark.spec("SP-14")
def test_a_reader_without_a_call_opens_nothing(kafka: EmbeddedCluster) -> None:
    import pickle

    kafka.forget_requests()
    reader = reader_of(kafka)
    pickle.loads(pickle.dumps(reader)).getDefaultReadLimit()
    assert kafka.requests == []


@pytest.mark.spec("SP-24")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 3})
def test_an_outage_is_waited_for(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka))
    fill(kafka, 5)
    query.trigger()
    kafka.kill(1)
    late = threading.Timer(1.0, kafka.restart, (1,))
    late.start()
    assert query.trigger() is None
    late.join()
    fill(kafka, 5)
    assert len(query.trigger() or []) == 5


@pytest.mark.spec("SP-24")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 3})
def test_an_outage_is_not_waited_for_without_end(kafka: EmbeddedCluster) -> None:
    reader = reader_of(kafka, kafka__default__api__timeout__ms="700", kafka__request__timeout__ms="500")
    kafka.kill(1)
    with pytest.raises(PortClosedError, match=kafka.bootstrap_servers):
        reader.initialOffset()
