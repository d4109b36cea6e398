"""`python -m kclient lag`: its output, its error texts and its exit codes."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from kclient import Consumer, TopicPartition, errors, group
from kclient.cli.exit_codes import exit_code
from kclient.cli.lag import History
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from kclient.metrics import prometheus_text
from tests.lag.lag_setup import commit

PATIENCE = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2, "payments": 1}) as cluster:
        cluster.produce("orders", ["x"] * 12_000, partition=0)
        cluster.produce("orders", ["x"], partition=1)
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("orders", 0): 1_500})
        commit(cluster.bootstrap_servers, "reports", {TopicPartition("payments", 0): 0})
        commit(
            cluster.bootstrap_servers,
            "\x1b[31m\N{GREEK SMALL LETTER ALPHA}",
            {TopicPartition("payments", 0): 0},
        )
        yield cluster


def lines(text: str) -> list[str]:
    """Without the spaces that align columns."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.spec("A-17", "S1-02")
def test_a_table_for_people(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", "billing", "-b", cluster.bootstrap_servers]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert lines(output.out) == [
        "group billing Empty offsets only members 0 coordinator 1 isolation read_uncommitted",
        "TOPIC PARTITION COMMITTED END LAG CLIENT NOTE",
        "orders 0 1,500 12,000 10,500 -",
        "orders 1 - 1 - - no commit",
        "total lag 10,500 (without 1 of 2 partitions)",
    ]


@pytest.mark.spec("A-17")
def test_json_is_one_object_on_a_line_for_each_group(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["lag", "billing", "reports", "--json", "--isolation-level", "read_committed"]
    assert main([*arguments, "-b", cluster.bootstrap_servers]) == 0
    billing, reports = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert {
        key: billing[key] for key in ("group", "kind", "state", "isolation_level", "total_lag", "members")
    } == {
        "group": "billing",
        "kind": "simple",
        "state": "Empty",
        "isolation_level": "read_committed",
        "total_lag": 10_500,
        "members": [],
    }
    assert [
        (row["partition"], row["committed"], row["end"], row["lag"]) for row in billing["partitions"]
    ] == [
        (0, 1_500, 12_000, 10_500),
        (1, None, 1, None),
    ]
    assert reports["group"] == "reports"


@pytest.mark.spec("U-26")
def test_a_group_that_committed_nothing_has_an_unknown_lag_and_not_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`total_lag` was once 0, so that no alert ever fired."""
    with (
        EmbeddedCluster(topics={"orders": 2}) as cluster,
        Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, group_id="idle") as consumer,
    ):
        while not consumer.assignment():
            consumer.poll(0.1)
        known = [line for line in prometheus_text(consumer.metrics()).splitlines() if "records_lag" in line]
        assert known
        assert all(line.startswith("# TYPE") or line.endswith(" NaN") for line in known)
        assert main(["lag", "idle", "--json", "-b", cluster.bootstrap_servers]) == 0
        parsed = json.loads(capsys.readouterr().out)
        assert (parsed["total_lag"], parsed["partitions_without_lag"]) == (None, 2)
        assert main(["lag", "idle", "-b", cluster.bootstrap_servers]) == 0
        assert "total lag unknown: no partition has both a commit and an end" in capsys.readouterr().out
        report = group.lag("idle", bootstrap_servers=cluster.bootstrap_servers)
        assert (report.total, report.unknown) == (None, 2)
        assert repr(report) == "GroupLag('idle', Stable, total=unknown, partitions=2, unknown=2, members=1)"


def test_all_groups_end_with_a_summary_of_one_line_each(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "--all-groups", "--topic", "orders", "-b", cluster.bootstrap_servers]) == 0
    output = lines(capsys.readouterr().out)
    begin = output.index("GROUP STATE MEMBERS PARTITIONS WITHOUT LAG TOTAL LAG")
    assert output[begin + 1] == "billing Empty 0 2 1 10,500"
    assert output[begin + 2].endswith("Empty 0 2 2 unknown")
    assert "reports Empty 0 2 2 unknown" in output[begin + 2 :]


@pytest.mark.spec("A-17", "S1-02")
def test_all_groups_and_names_that_would_steer_a_terminal(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "--all-groups", "--topic", "payments", "-b", cluster.bootstrap_servers]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("group ")] == [
        "\\x1b[31m\N{GREEK SMALL LETTER ALPHA}",
        "billing",
        "reports",
    ]
    assert "orders" not in out
    assert "\x1b" not in out


@pytest.mark.spec("A-17")
def test_a_group_that_is_not_there_stops_no_other(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "biling", "reports", "-b", cluster.bootstrap_servers]) == 5
    output = capsys.readouterr()
    assert "Did you mean billing?" in output.err
    assert output.out.startswith("group reports ")
    assert main(["lag", "biling", "-b", cluster.bootstrap_servers]) == 5
    assert capsys.readouterr().out == ""


@pytest.mark.spec("A-17")
def test_the_advice_for_a_missing_group_can_be_typed(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "nothing like it", "-b", cluster.bootstrap_servers]) == 5
    output = capsys.readouterr().err
    assert "GROUP_ID_NOT_FOUND" not in output
    typed = re.search(r"python -m kclient (lag --all-groups -b \S+)", output)
    assert typed
    assert main(typed[1].split()) == 0
    assert "group billing " in capsys.readouterr().out


@pytest.mark.spec("A-17")
def test_settings_come_from_options_before_set_before_the_file(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nisolation.level=read_committed\nclient.id=from-file\n")
    here = f"bootstrap.servers={cluster.bootstrap_servers}"
    assert main(["lag", "reports", "--properties", str(file), "--set", here, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["isolation_level"] == "read_committed"
    assert cluster.requests[-1].client_id == "from-file"
    arguments = ["lag", "reports", "--properties", str(file), "-b", cluster.bootstrap_servers]
    assert main([*arguments, "--isolation-level", "read_uncommitted", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["isolation_level"] == "read_uncommitted"


def test_a_cluster_without_groups_is_reported_beside_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(brokers=1) as empty:
        assert main(["lag", "--all-groups", "--json", "-b", empty.bootstrap_servers]) == 0
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "python -m kclient lag: this cluster has no group of consumers\n")


@pytest.mark.spec("A-17")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "Usage: python -m kclient"),
        (["lag"], 2, "lag: name at least one GROUP. Type: python -m kclient lag --all-groups"),
        (["lag", "g", "--all-groups"], 2, "--all-groups is not allowed with g"),
        (["lag", "g"], 2, "bootstrap_servers is missing"),
        (["lag", "g", "-b", "x", "--set", "nonsense"], 2, "--set number 1 is not KEY=VALUE"),
        (["lag", "g", "-b", "127.0.0.1:1", "--set", "isolation.levl=1"], 2, "isolation"),
        (["lag", "g", "-b", "x:1", "--timeout", "0"], 2, "must be a time such as 10s"),
        (["lag", "g", "-b", "x:1", "--topic", "t", "--all-topics"], 2, "not allowed with"),
        (["lag", "g", "-b", "127.0.0.1:1"], 3, "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done_is_reported_on_standard_error(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = main(arguments)
    except SystemExit as exc:  # the parser's own way
        ended = int(str(exc.code))
    output = capsys.readouterr()
    assert (ended, output.out) == (code, "")
    assert says in output.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InternalError("x"), 1),
        (errors.BrokerError("x", code=-1, name="UNKNOWN"), 1),
        (errors.ConfigError("x"), 2),
        (errors.VersionError("x"), 3),
        (errors.DeadlineError("x"), 3),
        (errors.AuthenticationError("x"), 4),
        (errors.GroupAuthorizationError("x"), 4),
        (errors.UnknownTopicError("x"), 5),
        (errors.BrokerError("x", code=69, name="GROUP_ID_NOT_FOUND"), 5),
        (errors.InvalidFrameError("x"), 6),
        (errors.AdvertisedListenerError("x"), 7),
    ],
)
def test_exit_codes(error: errors.KclientError, code: int) -> None:
    assert exit_code(error) == code


def watching(cluster: EmbeddedCluster) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kclient", "lag", "reports", "--json", "--watch", "0.05"]
    return subprocess.Popen(
        [*command, "-b", cluster.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.spec("A-17")
def test_watching_continues_until_it_is_interrupted(cluster: EmbeddedCluster) -> None:
    with watching(cluster) as process:
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline())["partitions"][0]["end"]]
        cluster.produce("payments", ["x"])
        while seen[-1] == seen[0]:
            seen.append(json.loads(process.stdout.readline())["partitions"][0]["end"])
        assert set(seen) == {seen[0], seen[0] + 1}
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (130, "")


def test_each_block_of_a_watch_in_a_log_begins_with_its_time(cluster: EmbeddedCluster) -> None:
    command = [sys.executable, "-m", "kclient", "lag", "reports", "--watch", "50ms"]
    began = datetime.now(UTC).replace(microsecond=0)
    with subprocess.Popen(
        [*command, "-b", cluster.bootstrap_servers], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        blocks = [list(iter(process.stdout.readline, "\n")) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    times = [datetime.fromisoformat(time.strip()) for time, *_ in blocks]
    assert began <= times[0] <= times[1] <= datetime.now(UTC)
    assert all(headline.startswith("group reports ") for _, headline, *_ in blocks)


@pytest.mark.spec("A-17")
def test_watching_ends_when_the_reader_is_gone(cluster: EmbeddedCluster) -> None:
    with watching(cluster) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 8
        assert process.stderr.read() == ""


@pytest.mark.parametrize("output", [">&-", ">/dev/full"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_an_output_that_cannot_be_written_is_reported_in_one_line(
    cluster: EmbeddedCluster, output: str
) -> None:
    command = f"{sys.executable} -m kclient lag billing -b {cluster.bootstrap_servers} {output}"
    done = subprocess.run(
        ["sh", "-c", command], check=False, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
    )
    assert done.returncode == 8
    assert done.stderr.startswith("python -m kclient lag: the output cannot be written: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_watch_plots_the_lag_and_says_where_it_goes(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds with a lag of 400, 300 and 100, ten seconds from each other."""

    class Clock:
        seconds = 0.0

        def now(self) -> float:
            self.seconds += 10
            return self.seconds

    history = History(Clock())  # type: ignore[arg-type]
    report = group.lag("billing", bootstrap_servers=cluster.bootstrap_servers)

    def at(lag: int | None) -> str:
        end = None if lag is None else 1_500 + lag
        rows = (attrs.evolve(report.partitions[0], end=end),)
        return history.line(attrs.evolve(report, partitions=rows))

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert at(400) == ""
    assert at(300) == "\u2588\u2586  falling by 10.0/s, gone in 30 s\n"
    assert at(None) == "\u2588\u2586  falling by 10.0/s, gone in 30 s\n"
    assert at(0) == "\u2588\u2586\u2581  falling by 20.0/s\n"
    assert at(700).endswith("  growing by 10.0/s\n")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert at(700) == "=-_##  growing by 7.5/s\n"


def test_a_watch_in_a_pipe_has_the_plot_from_its_second_round_on(cluster: EmbeddedCluster) -> None:
    command = [
        sys.executable,
        "-m",
        "kclient",
        "lag",
        "billing",
        "--watch",
        "0.2s",
        "-b",
        cluster.bootstrap_servers,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        plots = []
        for line in watching.stdout:
            plots += [line] if "unchanged" in line else []
            if len(plots) == 2:
                break
        watching.send_signal(signal.SIGINT)
        watching.stdout.close()
        watching.wait(PATIENCE)
    assert plots[1].split()[0] == "\u2588" * 3
