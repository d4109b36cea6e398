"""`kclient groups`: list, describe, reset in all of Kafka's ways, delete."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kclient import Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.records.writer import NewRecord
from tests.cli.support import Done, call
from tests.lag.lag_setup import commit

HOUR_MS = 3_600_000
NOW = int(time.time()) * 1000
ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2, "payments": 1}) as cluster:
        for hours in range(10, 0, -1):
            cluster.produce("orders", [NewRecord(None, b"x", NOW - hours * HOUR_MS)], partition=0)
        cluster.produce("orders", ["x"] * 4, partition=1)
        cluster.delete_records("orders", 1, before=1)
        yield cluster


@pytest.fixture
def group(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    """A group without members that has committed 5 and 2."""
    name = f"group of {request.node.name}"
    commit(cluster.bootstrap_servers, name, {ZERO: 5, ONE: 2})
    return name


def ask(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], *words: str) -> Done:
    return call(capsys, "groups", *words, "-b", cluster.bootstrap_servers)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def moved(done: Done) -> dict[int, int | None]:
    assert done.code == 0, done.err
    return {row["partition"]: row["new"] for row in json.loads(done.out)["partitions"]}


@pytest.mark.parametrize(
    ("where", "new"),
    [
        (["--to-earliest"], {0: 0, 1: 1}),
        (["--to-latest"], {0: 10, 1: 4}),
        (["--to-current"], {0: 5, 1: 2}),
        (["--to-offset", "3"], {0: 3, 1: 3}),
        (["--to-offset", "7"], {0: 7, 1: 4}),
        (["--to-offset", "0"], {0: 0, 1: 1}),
        (["--shift-by", "1"], {0: 6, 1: 3}),
        (["--shift-by", "-4"], {0: 1, 1: 1}),
        (["--to-datetime", datetime.fromtimestamp(NOW / 1000 - 3 * 3600, UTC).isoformat()], {0: 7, 1: 1}),
        (["--to-datetime", str(NOW + HOUR_MS)], {0: 10, 1: 4}),
        (["--to-datetime", "-150m"], {0: 8, 1: 1}),
        (["--by-duration", "PT2H30M"], {0: 8, 1: 1}),
        (["--by-duration", "150m"], {0: 8, 1: 1}),
    ],
)
def test_a_plan_changes_nothing_and_execute_commits_it(
    where: list[str],
    new: dict[int, int],
    cluster: EmbeddedCluster,
    group: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["reset", group, "--all-topics", "--json", *where]
    assert moved(ask(cluster, capsys, *arguments)) == new
    assert cluster.committed(group) == {ZERO: 5, ONE: 2}
    assert moved(ask(cluster, capsys, *arguments, "--execute")) == new
    assert cluster.committed(group) == {TopicPartition("orders", number): at for number, at in new.items()}


def test_the_plan_for_people(
    cluster: EmbeddedCluster, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ask(cluster, capsys, "reset", group, "--all-topics", "--to-offset", "3")
    assert lines(done.out) == [
        "TOPIC PARTITION COMMITTED NEW READ AGAIN SKIPPED NOTE",
        "orders 0 5 3 2 -",
        "orders 1 2 3 - 1",
    ]
    assert done.err == f"group {group}: nothing was changed; add --execute to commit the new offsets\n"
    done = ask(cluster, capsys, "reset", group, "--topic", "orders:1", "--to-offset", "99", "--execute")
    assert lines(done.out)[1:] == ["orders 1 2 4 - 2 99 is beyond the end"]
    assert done.err == f"group {group}: the new offsets are committed\n"


def test_what_was_exported_undoes_a_reset(
    cluster: EmbeddedCluster, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.csv"
    before.write_text(ask(cluster, capsys, "reset", group, "--all-topics", "--to-current", "--export").out)
    assert before.read_text() == "orders,0,5\norders,1,2\n"
    assert ask(cluster, capsys, "reset", group, "--all-topics", "--to-latest", "--execute").code == 0
    assert cluster.committed(group) == {ZERO: 10, ONE: 4}
    assert ask(cluster, capsys, "reset", group, "--from-file", str(before), "--execute").code == 0
    assert cluster.committed(group) == {ZERO: 5, ONE: 2}


def test_a_group_can_be_made_for_topics_that_are_named(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reset", "fresh", "--topic", "orders", "--to-latest"]
    assert ask(cluster, capsys, *arguments).code == 0
    assert cluster.committed("fresh") == {}
    assert ask(cluster, capsys, *arguments, "--execute").code == 0
    assert cluster.committed("fresh") == {ZERO: 10, ONE: 4}


@pytest.mark.parametrize("command", [["reset", "--all-topics", "--to-latest"], ["delete"]], ids="-".join)
def test_a_group_with_members_is_left_alone(
    command: list[str], cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    servers, name = cluster.bootstrap_servers, f"busy-{command[0]}"
    with Consumer(
        "orders", bootstrap_servers=servers, group_id=name, auto_offset_reset="earliest"
    ) as consumer:
        while not len(consumer.poll(0.2)):
            pass
        consumer.commit()
        before = cluster.committed(name)
        done = ask(cluster, capsys, command[0], name, *command[1:], "--execute")
        assert (done.code, done.out) == (2, "")
        assert f"Group {name} is Stable and has 1 member (consumer-" in done.err
        assert cluster.committed(name) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--all-topics"], "give exactly one of --to-earliest, --to-latest"),
        (["--all-topics", "--to-earliest", "--to-offset", "0"], "not --to-earliest and --to-offset"),
        (["--to-earliest"], "say which partitions"),
        (["--to-earliest", "--all-topics", "--topic", "orders"], "say which partitions"),
        (["--to-earliest", "--topic", "orders:x"], "neither TOPIC nor TOPIC:0,1"),
        (["--to-earliest", "--topic", "orders:0,7"], "topic orders has no partition 7"),
        (["--to-earliest", "--all-topics", "--json", "--export"], "--export is not allowed with --json"),
        (["--by-duration", "soon", "--all-topics"], "--by-duration soon is not a duration"),
        (["--to-datetime", "2026-01-01T00:00", "--all-topics"], "without a time zone"),
        (["--from-file", "nowhere.csv"], "--from-file nowhere.csv cannot be read"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_reset_that_cannot_be_meant_ends_with_2(
    words: list[str],
    says: str,
    cluster: EmbeddedCluster,
    group: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = ask(cluster, capsys, "reset", group, *words, "--execute")
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert cluster.committed(group) == {ZERO: 5, ONE: 2}


@pytest.mark.parametrize(
    "content",
    ["orders,0\n", "orders,zero,1\n", "\n", f"orders,0,{'1' * 5_000}\n", f"{'x' * 200_000},0,1\n"],
    ids=["short", "word", "empty", "long number", "long name"],
)
def test_a_file_that_is_no_list_of_offsets_is_refused(
    content: str, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "offsets.csv").write_text(content)
    done = ask(cluster, capsys, "reset", "any", "--from-file", str(tmp_path / "offsets.csv"))
    assert done.code == 2
    assert "topic,partition,offset" in done.err


def test_a_group_whose_name_is_a_dash_has_a_name_in_json(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(cluster.bootstrap_servers, "-", {ZERO: 5})
    assert "-" in [one["group"] for one in ask(cluster, capsys, "--json").events]


def test_list_names_every_group_and_its_state(
    cluster: EmbeddedCluster, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {one["group"]: one for one in ask(cluster, capsys, "--json").events}
    assert found[group]["state"] == "Empty"
    assert found == {one["group"]: one for one in ask(cluster, capsys, "list", "--json").events}
    first, *rows = lines(ask(cluster, capsys).out)
    assert first == "GROUP STATE TYPE PROTOCOL"
    assert len(rows) == len(found)


def test_describe_is_lag(cluster: EmbeddedCluster, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    described = ask(cluster, capsys, "describe", group)
    assert described == call(capsys, "lag", group, "-b", cluster.bootstrap_servers)
    assert "orders 0 5 10 5 -" in lines(described.out)


def test_delete_prints_what_goes_and_execute_deletes_it(
    cluster: EmbeddedCluster, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(cluster.bootstrap_servers, "second", {ZERO: 1})
    done = ask(cluster, capsys, "delete", group, "second")
    assert (done.code, done.err) == (0, "nothing was changed; add --execute to delete them\n")
    assert lines(done.out)[1:] == [f"{group} Empty 2", "second Empty 1"]
    assert cluster.committed(group) == {ZERO: 5, ONE: 2}
    done = ask(cluster, capsys, "delete", group, "second", "--execute", "--json")
    assert [(one["group"], one["deleted"]) for one in done.events] == [(group, True), ("second", True)]
    names = {one["group"] for one in ask(cluster, capsys, "--json").events}
    assert not {group, "second"} & names


def test_none_is_deleted_if_one_is_not_there(
    cluster: EmbeddedCluster, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ask(cluster, capsys, "delete", group, "nobody", "--execute")
    assert (done.code, done.out) == (5, "")
    assert cluster.committed(group) == {ZERO: 5, ONE: 2}
