"""Commits and groups as rows: what Java's tool prints of the same bytes, and runs that go on where one ended."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import confluent_kafka
import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError, TopicAuthorizationError
from kclient.spark.offsets_history import OffsetsHistorySettings
from kclient.spark.offsets_history.rows import TopicRecord, rows_of
from kclient.spark.offsets_history.store import HistoryState, HistoryStore, as_stored
from kclient.spark.ranges import OffsetRange
from tests.spark.offsets_history_support import keep, table

GOLDEN = Path(__file__).parents[1] / "group" / "data"
SECONDS = 30


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"flights": 2}) as made:
        made.produce("flights", ["a", "b", "c", "d"], partition=0, timestamp_ms=1_357_034_400_000)
        yield made


def commit(cluster: EmbeddedCluster, group: str, partition: int, offset: int, metadata: str = "") -> None:
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, group_id=group, enable_auto_commit=False
    ) as consumer:
        tp = TopicPartition("flights", partition)
        consumer.assign([tp])
        consumer.commit({tp: OffsetAndMetadata(offset, 0, metadata)})


# --- one record ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SP-90", "SP-91", "SP-92", "ST-20")
@pytest.mark.parametrize("release", ["2.8.2", "4.3.1"])
def test_rows_say_what_javas_tool_prints_of_the_same_bytes(release: str) -> None:
    counts = {"commits": 0, "members": 0, "tombstones": 0}
    with gzip.open(GOLDEN / f"written_by_{release}.jsonl.gz", "rt") as file:
        lines = list(file)
    for number, line in enumerate(lines):
        golden = json.loads(line)
        key, value = (
            None if golden[part] is None else bytes.fromhex(golden[part]) for part in ("key", "value")
        )
        found = list(rows_of(TopicRecord(7, number, 1_000, False, key, value), {}))
        assert all(name != "unknown" for name, _ in found)
        for name, row in found:
            as_stored(name, [row | {"ingest_ts": 2_000}])  # every value fits its column
        java = golden["json"]
        if java is None:
            continue
        counts["tombstones"] += java["value"] is None
        if java["key"]["type"] == 1:
            (commits,) = found
            counts["commits"] += 1
            assert commits == (
                "commits",
                commit_by_java(java) | {"src_partition": 7, "src_offset": number, "record_ts": 1_000},
            )
        elif java["value"] is not None:
            data = java["value"]["data"]
            rows = [row for _, row in found]
            counts["members"] += len(data["members"])
            assert [row.get("member_id") for row in rows] == (
                [m["memberId"] for m in data["members"]] or [None]
            )
            for row, member in zip(rows, data["members"], strict=False):
                assert (row["client_id"], row["client_host"]) == (member["clientId"], member["clientHost"])
                assert (row["rebalance_timeout_ms"], row["session_timeout_ms"]) == (
                    member["rebalanceTimeout"],
                    member["sessionTimeout"],
                )
            group = (data["protocolType"], data["generation"], data["protocol"], data["leader"])
            assert {
                (row["protocol_type"], row["generation"], row["protocol"], row["leader"]) for row in rows
            } == {group}
    assert min(counts.values()) > 0


def commit_by_java(java: dict[str, Any]) -> dict[str, Any]:
    key = java["key"]["data"]
    row = {name: key[name] for name in ("group", "topic", "partition")} | {"txn": False}
    if java["value"] is None:
        return row | {"tombstone": True}
    value = java["value"]["data"]
    epoch = value.get("leaderEpoch", -1)
    return row | {
        "tombstone": False,
        "offset": value["offset"],
        "metadata": value["metadata"],
        "leader_epoch": None if epoch < 0 else epoch,
        "commit_ts": value["commitTimestamp"],
        "expire_ts": None,
    }


@pytest.mark.spec("SP-90")
@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (b"\x7f\x00new", b"\x00\x00x", "version 0"),
        (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x63new", "version 99"),
        (b"\x00\x01\x00\x05g", None, "group at byte 2"),
        (b"\x00", b"", "key"),
        (None, b"x", "key"),
    ],
)
def test_what_is_not_known_is_kept_as_it_came(key: bytes | None, value: bytes | None, problem: str) -> None:
    ((name, row),) = rows_of(TopicRecord(1, 2, 3, False, key, value), {})
    assert name == "unknown"
    assert (row["key"] or None, row["value"]) == (key, value)
    assert problem in row["problem"]


@pytest.mark.spec("SP-90", "SP-95")
@pytest.mark.parametrize("written", [253_402_300_800_000, 1_760_000_000_000_000_000, 2**63 - 1])
def test_a_time_that_no_date_can_name_is_null(tmp_path: Path, written: int) -> None:
    """Any client may commit it, so it must not stop the history of all others."""
    row = {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "src_partition": 0,
        "src_offset": 5,
        "tombstone": False,
    }
    times = {"commit_ts": written, "expire_ts": written, "record_ts": written, "ingest_ts": 1_760_000_000_000}
    HistoryStore(tmp_path).write_range(OffsetRange("__consumer_offsets", 0, 5, 6), {"commits": [row | times]})
    (found,) = table(tmp_path, "commits")
    assert (found["commit_ts"], found["expire_ts"], found["record_ts"]) == (None, None, None)
    assert str(found["date"]) == "2025-10-09"


@pytest.mark.spec("SP-90")
def test_the_last_time_that_a_date_can_name_is_kept(tmp_path: Path) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    row = {
        "group": "g",
        "src_partition": 0,
        "src_offset": 5,
        "ingest_ts": 0,
        "record_ts": 253_402_300_799_999,
    }
    HistoryStore(tmp_path).write_range(OffsetRange("__consumer_offsets", 0, 5, 6), {"commits": [row]})
    (found,) = table(tmp_path, "commits")
    assert (found["record_ts"], str(found["date"])) == (last, "9999-12-31")


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SP-91", "SP-93", "SP-95", "ST-20")
def test_each_run_continues_where_the_last_one_ended(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    commit(cluster, "delays", 0, 1, "first")
    first = keep(cluster.bootstrap_servers, tmp_path)
    assert not first.resumed
    assert first.rows["commits"] == 1
    commit(cluster, "delays", 0, 4)
    commit(cluster, "billing", 1, 0)
    second = keep(cluster.bootstrap_servers, tmp_path)
    assert second.resumed
    third = keep(cluster.bootstrap_servers, tmp_path)
    assert (third.records, third.rows) == (0, {"watermarks": 2})
    rows = table(tmp_path, "commits", lambda row: row["group"] == "delays")
    assert [(row["topic"], row["partition"], row["offset"], row["metadata"]) for row in rows] == [
        ("flights", 0, 1, "first"),
        ("flights", 0, 4, ""),
    ]
    assert all(not row["tombstone"] and not row["txn"] and row["commit_ts"] for row in rows)
    assert len(table(tmp_path, "commits")) == 3
    marks = table(tmp_path, "watermarks")
    assert [(m["partition"], m["low"], m["high"], m["lso"]) for m in marks] == [(0, 0, 4, 4)] * 3 + [
        (1, 0, 0, 0)
    ] * 3
    (position,) = table(tmp_path, "positions")
    assert (position["offset"], position["record_ts"]) == (1, datetime(2013, 1, 1, 10, tzinfo=UTC))
    cluster.produce("flights", ["late"], partition=0, timestamp_ms=1_357_034_500_000)
    keep(cluster.bootstrap_servers, tmp_path)  # now there is a record at 4
    assert [row["offset"] for row in table(tmp_path, "positions")] == [1, 4]


@pytest.mark.spec("SP-90", "SP-91", "ST-20")
def test_a_transactions_commit_counts_from_its_marker_on(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    servers = cluster.bootstrap_servers
    nobody = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "moved"})
    metadata = nobody.consumer_group_metadata()
    nobody.close()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": "mover", "log_level": 0}
    )
    producer.init_transactions(SECONDS)

    def begin(offset: int) -> None:
        producer.begin_transaction()
        offsets = [confluent_kafka.TopicPartition("flights", 0, offset)]
        producer.send_offsets_to_transaction(offsets, metadata, SECONDS)

    begin(1)
    producer.commit_transaction(SECONDS)
    begin(2)
    producer.abort_transaction(SECONDS)
    begin(3)
    keep(servers, tmp_path)
    assert [(row["offset"], row["txn"]) for row in table(tmp_path, "commits")] == [(1, True)]
    producer.commit_transaction(SECONDS)
    keep(servers, tmp_path)
    assert [(row["offset"], row["txn"]) for row in table(tmp_path, "commits")] == [(1, True), (3, True)]


@pytest.mark.spec("SP-95")
def test_a_run_that_was_killed_leaves_nothing_twice(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset in range(4):
        commit(cluster, "delays", 0, offset)

    keep_state = HistoryStore.keep

    def killed(store: HistoryStore, state: HistoryState) -> None:
        """When the state would move after the first range's files."""
        if table(tmp_path, "commits"):
            raise KeyboardInterrupt
        keep_state(store, state)

    with monkeypatch.context() as patched:
        patched.setattr(HistoryStore, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(cluster.bootstrap_servers, tmp_path)
    assert table(tmp_path, "commits")
    commit(cluster, "delays", 0, 4)
    keep(cluster.bootstrap_servers, tmp_path, records_per_file=2)
    assert [row["offset"] for row in table(tmp_path, "commits")] == [0, 1, 2, 3, 4]


@pytest.mark.spec("SP-92", "ST-20")
def test_members_and_what_they_own(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "auto_offset_reset": "earliest",
    }
    for protocol in ("classic", "consumer"):
        with Consumer(
            "flights", group_id=protocol, client_id=f"{protocol}-app", group_protocol=protocol, **settings
        ) as one:
            while len(one.assignment()) < 2:
                one.poll(0.1)
            for _ in range(5):
                one.poll(0.05)
    keep(cluster.bootstrap_servers, tmp_path)
    rows = table(tmp_path, "groups", lambda row: row["group"] == "classic")
    joined = [row for row in rows if row["assignment"]]
    assert {(row["client_id"], row["protocol_type"], row["record"]) for row in joined} == {
        ("classic-app", "consumer", "GroupMetadata")
    }
    assert [(one["topic"], one["partition"]) for one in joined[-1]["assignment"]] == [
        ("flights", 0),
        ("flights", 1),
    ]
    rows = table(tmp_path, "groups", lambda row: row["group"] == "consumer")
    assert {row["client_id"] for row in rows if row["record"] == "ConsumerGroupMemberMetadata"} >= {
        "consumer-app"
    }
    owned = [
        row for row in rows if row["record"] == "ConsumerGroupCurrentMemberAssignment" and row["assignment"]
    ]
    assert {(one["topic"], one["partition"]) for one in owned[-1]["assignment"]} == {
        ("flights", 0),
        ("flights", 1),
    }
    assert any(row["tombstone"] for row in rows)  # the member left


@pytest.mark.spec("SP-94")
def test_a_record_is_looked_for_until_it_is_there(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """One without a time is found, too; one that was removed gives way to the next that there is."""
    cluster.produce("flights", ["e"], partition=0, timestamp_ms=-1)
    cluster.produce("flights", ["f"], partition=0, timestamp_ms=1_357_034_460_000)
    cluster.delete_records("flights", 0, 2)
    for group, offset in (("aged", 0), ("here", 3), ("timeless", 4), ("ahead", 6)):
        commit(cluster, group, 0, offset)

    def waiting() -> list[int]:
        state = HistoryStore(tmp_path).state()
        assert state is not None
        return sorted(state.waiting.get(TopicPartition("flights", 0), ()))

    keep(cluster.bootstrap_servers, tmp_path)
    at_ten = datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert [(row["offset"], row["record_ts"]) for row in table(tmp_path, "positions")] == [
        (0, at_ten),
        (3, at_ten),
        (4, None),
    ]
    assert waiting() == [6]
    cluster.produce("flights", ["g"], partition=0, timestamp_ms=1_357_034_520_000)
    keep(cluster.bootstrap_servers, tmp_path)
    assert [row["offset"] for row in table(tmp_path, "positions")] == [0, 3, 4, 6]
    assert waiting() == []


@pytest.mark.spec("SP-90", "SP-93")
def test_a_topic_that_may_not_be_described_is_not_sampled(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create_topic("secret", 1)
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, group_id="spy", enable_auto_commit=False
    ) as one:
        one.assign([TopicPartition("secret", 0)])
        one.commit({TopicPartition("secret", 0): OffsetAndMetadata(0, 0, "")})
    commit(cluster, "delays", 0, 1)
    cluster.deny("*", "DESCRIBE", "Topic:secret")
    with caplog.at_level("INFO", "kclient.spark"):
        keep(cluster.bootstrap_servers, tmp_path)
    assert {row["topic"] for row in table(tmp_path, "commits")} == {"flights", "secret"}
    assert {row["topic"] for row in table(tmp_path, "watermarks")} == {"flights"}
    assert "no ends of secret" in caplog.text
    cluster.allow("*", "DESCRIBE", "Topic:secret")
    keep(cluster.bootstrap_servers, tmp_path)
    assert {row["topic"] for row in table(tmp_path, "watermarks")} == {"flights", "secret"}


@pytest.mark.spec("SP-94")
def test_a_record_with_nanoseconds_for_a_time_stops_nothing(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("flights", ["x"], partition=1, timestamp_ms=1_760_000_000_000_000_000)
    commit(cluster, "delays", 1, 0)
    for _ in range(2):
        keep(cluster.bootstrap_servers, tmp_path)
    assert [(row["offset"], row["record_ts"]) for row in table(tmp_path, "positions")] == [(0, None)]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.spec("SP-90")
def test_without_read_on_the_offsets_topic_nothing_is_kept(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    commit(cluster, "delays", 0, 1)
    cluster.deny("*", "READ", "Topic:__consumer_offsets")
    with pytest.raises(TopicAuthorizationError, match="__consumer_offsets"):
        keep(cluster.bootstrap_servers, tmp_path)
    assert table(tmp_path, "commits") == []
    cluster.allow("*", "READ", "Topic:__consumer_offsets")
    keep(cluster.bootstrap_servers, tmp_path)
    assert [row["offset"] for row in table(tmp_path, "commits")] == [1]


def test_a_directory_belongs_to_one_cluster(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    commit(cluster, "delays", 0, 1)
    keep(cluster.bootstrap_servers, tmp_path)
    state = json.loads((tmp_path / "_history.json").read_text())
    (tmp_path / "_history.json").write_text(json.dumps(state | {"cluster_id": "another"}))
    with pytest.raises(ConfigError, match="holds the history of the cluster 'another'"):
        keep(cluster.bootstrap_servers, tmp_path)
    (tmp_path / "_history.json").write_text("{")
    with pytest.raises(SinkError, match="cannot be understood"):
        keep(cluster.bootstrap_servers, tmp_path)


@pytest.mark.spec("SP-95")
def test_tables_without_a_state_stay_as_they_are(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """The topic is compacted: what the files hold cannot be read again."""
    for offset in (1, 2, 3):
        commit(cluster, "delays", 0, offset)
    keep(cluster.bootstrap_servers, tmp_path)
    state = (tmp_path / "_history.json").read_bytes()
    (tmp_path / "_history.json").unlink()
    with pytest.raises(ConfigError, match=r"not the file _history\.json.*give another --out"):
        keep(cluster.bootstrap_servers, tmp_path)
    assert [row["offset"] for row in table(tmp_path, "commits")] == [1, 2, 3]
    (tmp_path / "_history.json").write_bytes(state)
    commit(cluster, "delays", 0, 4)
    assert keep(cluster.bootstrap_servers, tmp_path).resumed
    assert [row["offset"] for row in table(tmp_path, "commits")] == [1, 2, 3, 4]


@pytest.mark.spec("SP-95")
def test_a_topic_that_was_recreated_leaves_the_history_of_the_old_one(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    for offset in (1, 2, 3):
        commit(cluster, "delays", 0, offset)
    keep(cluster.bootstrap_servers, tmp_path)
    cluster.recreate_topic("__consumer_offsets")
    commit(cluster, "delays", 0, 4)
    with pytest.raises(ConfigError, match=r"__consumer_offsets was recreated.*give another --out"):
        keep(cluster.bootstrap_servers, tmp_path)
    assert [row["offset"] for row in table(tmp_path, "commits")] == [1, 2, 3]


@pytest.mark.spec("SP-95")
def test_a_log_that_ends_too_early_removes_nothing(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that lags reports an earlier end offset, or too few partitions."""
    for offset in (1, 2, 3):
        commit(cluster, "delays", 0, offset)
    store = HistoryStore(tmp_path)
    keep(cluster.bootstrap_servers, tmp_path)
    state = store.state()
    assert state is not None
    store.keep(attrs.evolve(state, offsets={tp: offset + 2 for tp, offset in state.offsets.items()}))
    keep(cluster.bootstrap_servers, tmp_path)
    assert "PARTITION_OFFSET_CHANGED" in caplog.text
    again = store.state()
    assert again is not None
    assert again.offsets == {tp: offset + 2 for tp, offset in state.offsets.items()}
    store.tidy({})
    assert [row["offset"] for row in table(tmp_path, "commits")] == [1, 2, 3]


def test_all_that_is_wrong_with_the_settings_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        OffsetsHistorySettings.parse(
            {"bootstrap": "", "every": "soon", "options": "subscribe=x", "speed": "1"}
        )
    text = " ".join(caught.value.problems)
    for word in ("--bootstrap", "--out is missing", "--every", "subscribe", "speed is not a setting"):
        assert word in text


@pytest.mark.parametrize(
    ("every", "milliseconds"), [("5", 5_000), ("5s", 5_000), ("500ms", 500), ("2m", 120_000)]
)
def test_the_time_between_two_runs(every: str, milliseconds: int) -> None:
    settings = OffsetsHistorySettings.parse({"bootstrap": "localhost:1", "out": "/lake", "every": every})
    assert settings.every_ms == milliseconds


@pytest.mark.parametrize("every", ["once", "availableNow", "0", "soon"])
def test_what_is_no_time_between_two_runs(every: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OffsetsHistorySettings.parse({"bootstrap": "localhost:1", "out": "/lake", "every": every})
    assert caught.value.problems == (f"--every must be a time such as 10s, 500ms or 5m, not {every!r}",)
