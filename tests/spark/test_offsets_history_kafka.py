"""The history of a real Kafka: the commits that Kafka's own tool prints, by all kinds of groups and in transactions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kclient.spark.offsets_history.views import lag_table
from localkafka import KafkaCluster, command_line
from tests.cli.support import COMMAND, PATIENCE
from tests.kafka import other_clients
from tests.kafka.offsets_activity import Activity, members
from tests.spark.offsets_history_support import keep, table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.kafka
@pytest.mark.spec("SP-90", "SP-91", "SP-92", "SP-93", "ST-20")
def test_the_tables_are_what_the_groups_did(kafka1: KafkaCluster, fresh_name: str, tmp_path: Path) -> None:
    kafka1.create_topic(fresh_name, 2)
    other_clients.produce_numbers(kafka1, fresh_name, range(10), 2)
    activity = Activity(kafka1, fresh_name, fresh_name)
    with members(activity, newer=True):
        first = keep(kafka1.bootstrap_servers, tmp_path)
        owners = {what: owned_by_members(tmp_path, activity.name(what)) for what in activity.names}
        reported = {
            what: other_clients.members(kafka1, activity.name(what))[1]
            for what in owners
            if what != "transactional"
        }
    for what, by_client in reported.items():
        assert owners[what] == {(tp.topic, tp.partition) for owned in by_client.values() for tp in owned}, (
            what
        )
    activity.delete("ours")
    second = keep(kafka1.bootstrap_servers, tmp_path)
    assert second.resumed
    assert 0 < second.records < first.records + second.records

    pairs = activity.read()
    ours = set(activity.names.values())
    rows = table(tmp_path, "commits", lambda row: row["group"] in ours)
    assert [as_java(row) for row in rows] == [
        by_java(one) for one in activity.formatted(command_line.COMMITS, len(pairs))
    ]
    assert [row["offset"] for row in rows if row["txn"]] == [1]  # the other transaction was aborted
    assert any(row["tombstone"] for row in rows if row["group"] == activity.name("ours"))
    assert table(tmp_path, "unknown") == []
    marks = table(tmp_path, "watermarks", lambda row: row["topic"] == fresh_name)
    assert {(row["partition"], row["low"], row["high"], row["lso"]) for row in marks} == {
        (0, 0, 5, 5),
        (1, 0, 5, 5),
    }


@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.spec("SP-90", "SP-91", "SP-94", "SP-95", "ST-20")
def test_a_watch_that_is_killed_loses_nothing(kafka1: KafkaCluster, fresh_name: str, tmp_path: Path) -> None:
    """The command line, while classic groups, groups of KIP-848 and transactions commit; killed between them."""
    kafka1.create_topic(fresh_name, 2)
    other_clients.produce_numbers(kafka1, fresh_name, range(10), 2)
    activity = Activity(kafka1, fresh_name, fresh_name)
    watch = [*COMMAND, "offsets-history", "-b", kafka1.bootstrap_servers, "--out", str(tmp_path)]
    watch += ["--watch", "--every", "1s", "--json"]
    with members(activity, newer=True):
        with watching(watch) as (process, _):
            pass  # it has reported its first run
        assert process.wait(PATIENCE) == -signal.SIGKILL
    activity.delete("ours")
    deleted = activity.name("ours")
    with watching(watch) as (process, next_run):
        runs = []
        while not any(row["tombstone"] for row in table(tmp_path, "commits") if row["group"] == deleted):
            runs.append(next_run())
            assert sum(run["seconds"] + 1 for run in runs) < PATIENCE, runs
        next_run()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0

    pairs = activity.read()
    ours = set(activity.names.values())
    rows = table(tmp_path, "commits", lambda row: row["group"] in ours)
    java = [by_java(one) for one in activity.formatted(command_line.COMMITS, len(pairs))]
    assert [as_java(row) for row in rows] == java
    last = {
        (row["group"], row["partition"]): row
        for row in lag_table(tmp_path).to_pylist()
        if row["group"] in ours
    }
    assert deleted not in {row["group"] for row in last.values() if row["sampled_at"] == newest(last)}
    for what, group in activity.names.items():
        if what == "ours":
            continue
        for tp, offset in other_clients.committed(kafka1, group).items():
            row = last[group, tp.partition]
            assert (row["sampled_at"], row["committed"], row["lag"]) == (newest(last), offset, 5 - offset)


def newest(rows: dict[Any, dict[str, Any]]) -> datetime:
    """When was sampled last."""
    return max(row["sampled_at"] for row in rows.values())


@contextmanager
def watching(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], Callable[[], dict[str, Any]]]]:
    """The command after it has reported a run, and a function that waits for the next; killed at the end.

    One that reports nothing in time is aborted, and prints where its threads are.
    """
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        output = process.stdout
        assert output is not None

        def next_run() -> dict[str, Any]:
            abort = threading.Timer(PATIENCE, process.send_signal, [signal.SIGABRT])
            abort.start()
            line = output.readline()
            abort.cancel()
            assert line, process.wait(PATIENCE)
            run: dict[str, Any] = json.loads(line)
            return run

        try:
            next_run()
            yield process, next_run
        finally:
            process.kill()


def owned_by_members(out: Path, group: str) -> set[tuple[str, int]]:
    """The partitions of all members, by the last word about each of them."""
    rows = table(out, "groups", lambda row: row["group"] == group)
    last = {row["member_id"]: row for row in rows if row["record"] == "ConsumerGroupCurrentMemberAssignment"}
    classic = [row for row in rows if row["record"] == "GroupMetadata"]
    last |= {row["member_id"]: row for row in classic if row["src_offset"] == classic[-1]["src_offset"]}
    return {(one["topic"], one["partition"]) for row in last.values() for one in row["assignment"] or ()}


def by_java(record: dict[str, Any]) -> tuple[Any, ...]:
    key, value = record["key"]["data"], record["value"] and record["value"]["data"]
    found = value and (value["offset"], value["metadata"], value["commitTimestamp"])
    return key["group"], key["topic"], key["partition"], found


def as_java(row: dict[str, Any]) -> tuple[Any, ...]:
    found = None
    if not row["tombstone"]:
        found = row["offset"], row["metadata"], (row["commit_ts"] - EPOCH) // timedelta(milliseconds=1)
    return row["group"], row["topic"], row["partition"], found
