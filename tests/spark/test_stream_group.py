"""Progress in a group: what is committed, when, and that nothing of it ever ends a query."""

from __future__ import annotations

import json
import logging
import time
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from kclient import Consumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError
from kclient.group.offset_commit import OffsetCommitter
from kclient.lag.calls import lag
from kclient.spark import group_progress, track
from kclient.spark.client import DriverClient
from kclient.spark.group_progress import GroupCommitter, end_offsets, source_lags
from kclient.spark.listener import GroupCommitListener
from kclient.spark.options import SourceOptions
from kclient.types import TopicPartition
from tests.spark.stream_driver import Query, commit, fill, reader_of

pytestmark = [pytest.mark.kafka_cluster(brokers=2, topics={"t": 2}), pytest.mark.timeout(60)]

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Session:
    """As much of a Spark session as a listener needs."""

    def __init__(self) -> None:
        self.listeners: list[GroupCommitListener] = []
        self.streams = SimpleNamespace(
            addListener=self.listeners.append, removeListener=self.listeners.remove
        )


def options_of(kafka: EmbeddedCluster, **extra: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "t", **extra}


def tracker_of(kafka: EmbeddedCluster, **arguments: Any) -> GroupCommitListener:
    return track(cast(SparkSession, Session()), options=options_of(kafka), group="g", **arguments)


def progress(batch: int, start: Any, end: Any, latest: Any = None, query: str = "q") -> dict[str, Any]:
    """The progress that Spark reports for a batch, with the offsets of partitions 0, 1, … of topic t."""
    sources = [
        {
            "description": "kclient",
            "startOffset": offsets(start),
            "endOffset": offsets(end),
            "latestOffset": offsets(latest or end),
        },
        {"description": "rate", "startOffset": "1", "endOffset": "2", "latestOffset": "None"},
    ]
    return {"id": query, "name": f"name of {query}", "batchId": batch, "sources": sources}


def offsets(numbers: Any) -> str:
    return json.dumps({"t": {str(partition): offset for partition, offset in enumerate(numbers)}})


def hear(tracker: GroupCommitListener, **fields: Any) -> None:
    tracker.onQueryProgress(cast(Any, SimpleNamespace(progress=progress(**fields))))


# --- by the source itself


@pytest.mark.spec("SP-19", "SP-68", "I-21")
def test_the_source_commits_the_end_of_each_batch_one_batch_late(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka, commit__group__id="g", commit__metadata="mine"))
    fill(kafka, 10, 5)
    query.trigger()
    assert kafka.committed("g") == {}
    fill(kafka, 1)
    query.trigger()
    assert kafka.committed("g") == {T0: 10, T1: 5}
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g") as consumer:
        assert consumer.committed([T0])[T0] == OffsetAndMetadata(10, None, "mine")


def test_without_a_group_nothing_is_committed(kafka: EmbeddedCluster) -> None:
    query = Query(reader_of(kafka, kafka__group__id="g"))
    for _ in range(3):
        fill(kafka, 3)
        query.trigger()
    assert not [request for request in kafka.requests if request.api in ("OffsetCommit", "FindCoordinator")]
    named = Query(reader_of(kafka, kafka__group__id="g", commitOffsets="true"))
    for _ in range(2):
        fill(kafka, 3)
        named.trigger()
    assert kafka.committed("g") == {T0: 12, T1: 0}


@pytest.mark.spec("SP-68", "SP-73", "ST-16")
def test_a_group_with_members_is_reported_once(
    kafka: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(reader_of(kafka, commit__group__id="g"))
    with Consumer("t", bootstrap_servers=kafka.bootstrap_servers, group_id="g") as member:
        while not member.assignment():
            member.poll(0.1)
        with caplog.at_level(logging.WARNING, "kclient.spark"):
            for _ in range(4):
                fill(kafka, 3)
                assert len(query.trigger() or []) == 3
    logged = [
        record.getMessage() for record in caplog.records if "while it has members" in record.getMessage()
    ]
    assert len(logged) == 1
    fill(kafka, 3)
    query.trigger()
    assert kafka.committed("g") == {T0: 12, T1: 0}


@pytest.mark.spec("SP-68", "SP-73")
def test_whatever_fails_the_query_continues(
    kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_progress, "COMMIT_SECONDS", 0.3)
    query = Query(reader_of(kafka, commit__group__id="g"))
    faults = ["GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE", "OFFSET_METADATA_TOO_LARGE"]
    for fault in [None, *faults]:
        fill(kafka, 3)
        rule = None if fault is None else kafka.fail("OffsetCommit", fault, times=None)
        assert len(query.trigger() or []) == 3
        if rule is not None:
            kafka.lift(rule)

    async def bug(*_: Any, **__: Any) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(OffsetCommitter, "commit", bug)
    fill(kafka, 3)
    assert len(query.trigger() or []) == 3
    assert "a bug" in caplog.text
    monkeypatch.undo()
    fill(kafka, 3)
    query.trigger()
    assert kafka.committed("g") == {T0: 15, T1: 0}


@pytest.mark.spec("SP-71")
def test_after_a_loss_the_group_goes_back_too(kafka: EmbeddedCluster) -> None:
    query = Query(
        reader_of(kafka, commit__group__id="g", failOnDataLoss="false", fetchOffset__numRetries="0")
    )
    for _ in range(3):
        fill(kafka, 10)
        query.trigger()
    assert kafka.committed("g")[T0] == 20
    kafka.truncate("t", 0, 10)
    query.trigger()
    fill(kafka, 2)
    query.trigger()
    assert kafka.committed("g")[T0] == 10


@pytest.mark.spec("SP-71", "SP-57")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 1, "other": 1})
def test_a_topic_that_was_gone_is_committed_from_its_new_beginning(
    kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"failOnDataLoss": "false", "fetchOffset__numRetries": "0", "commit__group__id": "g"}
    query, other = Query(reader_of(kafka, "t,other", **options)), TopicPartition("other", 0)
    for _ in range(2):
        fill(kafka, 5)
        fill(kafka, 5, topic="other")
        query.trigger()
    assert kafka.committed("g") == {T0: 5, other: 5}
    kafka.delete_topic("other")
    for _ in range(2):
        fill(kafka, 1)
        query.trigger()
    kafka.forget_requests()
    monkeypatch.setattr(group_progress, "RENEW_SECONDS", 0.0)
    query.trigger()
    (again,) = [request.request for request in kafka.requests if request.api == "OffsetCommit"]
    assert sum(len(topic.partitions) for topic in again.topics) == 1
    monkeypatch.undo()
    kafka.create_topic("other", 1)
    for _ in range(2):
        fill(kafka, 2, topic="other")
        query.trigger()
    assert kafka.committed("g")[other] == 2


# --- by the listener


@pytest.mark.spec("SP-69", "SP-70", "ST-16", "I-21")
def test_the_listener_commits_the_last_batch_too(kafka: EmbeddedCluster) -> None:
    fill(kafka, 30, 20)
    tracker = tracker_of(kafka)
    hear(tracker, batch=0, start=(0, 0), end=(10, 5), latest=(30, 20))
    assert kafka.committed("g") == {T0: 10, T1: 5}
    (source,) = tracker.lag
    assert (source.min, source.max, source.avg, source.total) == (15, 20, 17.5, 35)
    hear(tracker, batch=1, start=(10, 5), end=(30, 20))
    report = lag("g", bootstrap_servers=kafka.bootstrap_servers)
    assert report.total == 0
    metadata = [json.loads(one.committed.metadata) for one in report.partitions if one.committed]
    assert metadata == [{"query": "q", "batch": 1}] * 2
    tracker.close()


@pytest.mark.spec("SP-70")
def test_the_last_progress_is_committed_on_close(kafka: EmbeddedCluster) -> None:
    session = Session()
    tracker = track(cast(SparkSession, session), options=options_of(kafka, **{"commit.group.id": "g"}))
    assert session.listeners == [tracker]
    assert tracker.close(progress(batch=3, start=(0, 0), end=(7, 7)))
    assert kafka.committed("g") == {T0: 7, T1: 7}
    assert session.listeners == []
    hear(tracker, batch=4, start=(7, 7), end=(9, 9))  # an event that was on its way
    assert tracker.close()
    assert kafka.committed("g") == {T0: 7, T1: 7}


@pytest.mark.spec("SP-70")
def test_closing_waits_for_a_batch_reported_meanwhile(
    kafka: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark reports the last batch on its own thread, at the moment when the query ends."""
    tracker = tracker_of(kafka)
    hear(tracker, batch=0, start=(0, 0), end=(1, 1))
    kafka.forget_requests()
    kafka.delay("OffsetCommit", 500, times=1)
    late = Thread(target=hear, args=(tracker,), kwargs={"batch": 1, "start": (1, 1), "end": (2, 2)})
    late.start()
    while not any(request.api == "OffsetCommit" for request in kafka.requests):
        time.sleep(0.01)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        tracker.close(progress(batch=1, start=(1, 1), end=(2, 2)))
        late.join(10)
    assert kafka.committed("g") == {T0: 2, T1: 2}
    assert caplog.messages == []


@pytest.mark.spec("SP-70", "SP-73")
def test_what_comes_after_closing_sends_nothing(
    kafka: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    driver = DriverClient(SourceOptions.parse(options_of(kafka), "stream"))
    committer = GroupCommitter(driver, "g")
    assert committer.commit({T0: 1})
    driver.close()
    kafka.forget_requests()
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert not committer.commit({T0: 2})
    assert kafka.requests == []
    assert caplog.messages == []


@pytest.mark.spec("SP-71")
def test_the_larger_wins_where_two_commit(kafka: EmbeddedCluster) -> None:
    tracker = tracker_of(kafka)
    commit(kafka, "g", {0: 900})  # of another run, from another place
    hear(tracker, batch=0, start=(0, 0), end=(10, 10))
    assert kafka.committed("g") == {T0: 10, T1: 10}
    commit(kafka, "g", {0: 30})  # the source, which was faster
    hear(tracker, batch=1, start=(10, 10), end=(20, 20))
    assert kafka.committed("g") == {T0: 30, T1: 20}
    hear(tracker, batch=0, start=(0, 0), end=(10, 10))  # late
    assert kafka.committed("g") == {T0: 30, T1: 20}
    hear(tracker, batch=2, start=(30, 20), end=(5, 25))  # the log was cut
    assert kafka.committed("g") == {T0: 5, T1: 25}
    tracker.close()


def test_only_the_named_query_is_followed(kafka: EmbeddedCluster) -> None:
    tracker = tracker_of(kafka, query="name of mine", metadata="m")
    hear(tracker, batch=0, start=(0, 0), end=(9, 9), query="theirs")
    assert kafka.committed("g") == {}
    hear(tracker, batch=0, start=(0, 0), end=(2, 2), query="mine")
    assert kafka.committed("g") == {T0: 2, T1: 2}
    tracker.close()


@pytest.mark.spec("SP-72")
def test_unchanged_offsets_are_committed_again_after_hours(
    kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = tracker_of(kafka)

    def commits() -> int:
        return sum(request.api == "OffsetCommit" for request in kafka.requests)

    hear(tracker, batch=0, start=(0, 0), end=(2, 2))
    idle = cast(Any, SimpleNamespace(id="q"))
    tracker.onQueryIdle(idle)
    assert commits() == 1
    monkeypatch.setattr(group_progress, "RENEW_SECONDS", 0.0)
    tracker.onQueryIdle(idle)
    assert commits() == 2
    (again,) = [request.request for request in kafka.requests if request.api == "OffsetCommit"][1:]
    assert sum(len(topic.partitions) for topic in again.topics) == 2
    tracker.close()


@pytest.mark.spec("SP-72")
def test_an_idle_source_commits_again_too(kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(reader_of(kafka, commit__group__id="g"))
    for _ in range(2):
        fill(kafka, 2)
        query.trigger()
    kafka.forget_requests()
    assert query.trigger() is None
    assert not [request for request in kafka.requests if request.api == "OffsetCommit"]
    monkeypatch.setattr(group_progress, "RENEW_SECONDS", 0.0)
    assert query.trigger() is None
    assert [request.api for request in kafka.requests if request.api == "OffsetCommit"] == ["OffsetCommit"]


@pytest.mark.spec("SP-71", "SP-72")
def test_to_commit_again_never_takes_back_what_the_other_one_has_committed(
    kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source knows of the last batch but one, the listener of the last; either may have missed something."""
    tracker, query = tracker_of(kafka), Query(reader_of(kafka, commit__group__id="g"))
    for _ in range(2):
        fill(kafka, 2, 2)
        query.trigger()
    hear(tracker, batch=1, start=(2, 2), end=(4, 4))
    monkeypatch.setattr(group_progress, "RENEW_SECONDS", 0.0)
    assert query.trigger() is None
    assert kafka.committed("g") == {T0: 4, T1: 4}
    commit(kafka, "g", {0: 9}, "theirs")
    kafka.forget_requests()
    tracker.onQueryIdle(cast(Any, SimpleNamespace(id="q")))
    assert kafka.committed("g") == {T0: 9, T1: 4}
    (again,) = [request.request for request in kafka.requests if request.api == "OffsetCommit"]
    kept = {one.partition_index: one.committed_metadata for topic in again.topics for one in topic.partitions}
    assert kept == {0: "theirs", 1: '{"query": "q", "batch": 1}'}
    tracker.close()


def test_tracking_needs_a_group(kafka: EmbeddedCluster) -> None:
    with pytest.raises(ConfigError, match="no group to commit to"):
        track(cast(SparkSession, Session()), options=options_of(kafka))


@pytest.mark.spec("SP-37")
def test_progress_that_reports_nothing() -> None:
    assert source_lags(None) == []
    assert end_offsets(None) == {}
    nothing = {
        "sources": [{"description": "d", "startOffset": None, "endOffset": None, "latestOffset": None}]
    }
    assert source_lags(nothing) == []
    assert end_offsets(nothing) == {}
    as_objects = {
        "sources": [
            {
                "description": "d",
                "startOffset": None,
                "endOffset": {"t": {"0": 4}},
                "latestOffset": {"t": {"0": 9}},
            }
        ]
    }
    assert [source.total for source in source_lags(as_objects)] == [5]
    assert end_offsets(as_objects) == {T0: 4}


def test_progress_as_older_sparks_report_it() -> None:
    source = {"description": "d", "startOffset": "None", "endOffset": "{'t': {'0': 4}}"}
    reported = {"sources": [{**source, "latestOffset": "{'t': {'0': 9}}"}]}
    assert end_offsets(reported) == {T0: 4}
    assert [source.total for source in source_lags(reported)] == [5]


def test_a_committer_counts_what_fails(kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from kclient.spark.client import DriverClient

    monkeypatch.setattr(group_progress, "COMMIT_SECONDS", 0.2)
    driver = DriverClient(
        SourceOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, "stream")
    )
    committer = GroupCommitter(driver, "g")
    assert not committer.commit({T0: 1})
    assert committer.failures == 1
    driver.close()
