"""What holds for every command: help, arguments that cannot be used, the extra that is missing, completion."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kclient.cli import MODULE, SCRIPT, program
from kclient.cli.other_tools import OTHER_COMMANDS, OTHER_OPTIONS
from tests.cli.support import COMMAND, call, job, run

COMMANDS = [
    ["consume"],
    ["produce"],
    ["topics"],
    ["topics", "list"],
    ["topics", "describe"],
    ["groups"],
    ["groups", "list"],
    ["groups", "describe"],
    ["groups", "reset"],
    ["groups", "delete"],
    ["lag"],
    ["ingest"],
    ["ingest", "status"],
    ["ingest", "gc"],
    ["offsets-history"],
    ["spark"],
    ["spark", "doctor"],
    ["doctor"],
    ["decode"],
    ["explain"],
    ["version"],
    ["completion"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_a_help_page(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, *command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: {MODULE} {' '.join(command)}")
    assert "Exit codes: 0 ok" in done.out
    assert "\x1b" not in done.out


def test_the_exit_codes_are_reported_in_the_words_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text(encoding="utf-8")
    footer = " ".join(call(capsys, "--help").out.split())
    for code, words in (
        (3, "no broker can be reached"),
        (4, "authentication failed, or a permission is missing"),
        (7, "the brokers advertise addresses that cannot be reached"),
    ):
        assert f"| {code} | {words} |" in page
        assert f"{code} {words.replace(',', '')}" in footer


def test_the_first_page_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "--help").out
    assert [name for [name, *_] in COMMANDS if f"│ {name} " not in page] == []


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=lambda words: " ".join(words) or "kclient")
def test_help_pages_fit_80_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = call(capsys, *command, "--help").out
    assert [line for line in page.splitlines() if len(line.rstrip()) > 80] == []


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command not in (["spark"], ["completion"])], ids=" ".join
)
def test_every_command_has_a_form_for_machines(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--json " in call(capsys, *command, "--help").out


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("consume", "-b"),
        ("lag", "-b"),
        ("ingest", "-b"),
        ("ingest status", "--checkpoint"),
        ("ingest gc", "--sink"),
        ("offsets-history", "-b"),
        ("offsets-history", "--out"),
    ],
)
def test_what_must_be_given_is_marked(
    command: str, option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    page = call(capsys, *command.split(), "--help").out
    assert [row for row in page.splitlines() if option in row.split() and "(required" in row]


def test_what_need_not_be_given_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    page = " ".join(call(capsys, "ingest", "status", "--help").out.replace("│", " ").split())
    assert "ask this cluster for the ends of the logs" in page
    assert "(required, here" not in page


@pytest.mark.spec("SP-82")
def test_the_page_of_ingest_groups_its_options_and_reports_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = call(capsys, "ingest", "--help").out
    words = " ".join(page.replace("│", " ").split())
    for group in (
        "What and where to (required)",
        "What is read",
        "How it is written",
        "How it runs",
        "Connection",
    ):
        assert f"╭─ {group} ─" in page
    assert "[default: availableNow]" in words
    assert "[default: local[*,4]]" in words
    assert "[default: earliest]" in words
    assert f"{MODULE} ingest -b localhost:9092 --topics orders \\" in words


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bogus"], 'Unknown command "bogus"'),
        (["lga"], "Did you mean"),
        (["lag", "g", "--bogus"], "Unknown option: --bogus"),
        (["lag", "g", "-b"], "-b requires an argument"),
        (["lag", "--group", "billing"], f"Type: {MODULE} lag billing"),
        (["lag", "g"], "Say where the cluster is with -b HOST:PORT"),
        (["lag", "g", "-b", "x:1", "--isolation-level", "none"], "read_committed"),
        (["ingest", "--engine", "magic"], 'Choose from: "spark", "direct"'),
        (["offsets-history"], "--out is missing"),
        (["spark", "doctor", "--jre", "other"], "Choose from"),
        (["ingest", "status"], f"Type: {MODULE} ingest status --checkpoint DIR"),
        (["ingest", "--topics"], "requires an argument"),
        (["completion", "tcsh"], "Choose from"),
        (["completion"], "parameter SHELL requires an argument"),
        (
            ["lag", "g", "--brokers", "x:1"],
            "Unknown option: --brokers. Say where the cluster is with -b HOST:PORT.",
        ),
        (["ingest", "--broker-list", "x:1"], "Say where the cluster is with -b HOST:PORT."),
        (["spark", "doctor", "--brokers", "x:1"], "Unknown option: --brokers. Type: "),
        (["ingest", "staus", "--checkpoint", "c"], "Did you mean status?"),
        (["ingest", "orders"], f"what to do with orders. Type: {MODULE} ingest --help"),
        (["tail", "orders"], "Unknown command: tail. Write consume TOPIC -o end."),
        (
            ["console-consumer", "--topic", "orders"],
            "Unknown command: console-consumer. Write consume TOPIC.",
        ),
        (
            ["consume", "orders", "--from-beginning"],
            "Leave it out: consume begins at the beginning unless -o",
        ),
        (["consume", "orders", "--max-messages", "5"], "Unknown option: --max-messages. Write -n N."),
        (["consume", "-t", "orders"], "Write the topics without an option: consume TOPIC."),
        (["consume", "orders"], "Say where the cluster is with -b HOST:PORT, --properties FILE or --profile"),
        (["consume", "ord*", "-b", "x:1"], "'ord*' is no topic's name: letters, digits"),
        (["consume", "a,b", "-b", "x:1"], "'a,b' is no topic's name: letters, digits"),
        (["topics", "orders"], "with orders. To see one, write topics describe orders. Type: "),
        (["topics", "desc", "orders"], "Did you mean describe?"),
        (["topics", "--list"], "Unknown option: --list. Leave it out: topics lists them."),
        (["topics", "create", "orders"], "kclient makes, changes and deletes no topics"),
        (["groups", "billing"], "To see one, write groups describe billing."),
        (["groups", "reset", "--group", "billing"], "without an option: groups reset GROUP."),
        (["groups", "reset", "g", "--shift-by", "-1h"], "Write --shift-by -100, or --by-duration 1h"),
    ],
)
def test_wrong_arguments_are_reported_in_a_sentence_and_end_with_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


def test_a_watch_without_seconds_leaves_the_next_word_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """`--watch billing` watches the group billing; it once said that billing is no number."""
    done = call(capsys, "lag", "--watch", "billing")
    assert "billing" not in done.err  # all that is missing is the cluster
    assert "bootstrap_servers is missing" in done.err
    for time in ("-1", "0", "0s"):
        output = call(capsys, "lag", "g", "-b", "x:1", "--watch", time).err
        assert f"must be a time such as 10s, 500ms or 5m, not '{time}'" in output


@pytest.mark.parametrize("time", ["5", "5s", "5000ms", "0.5m"])
def test_a_watch_takes_a_time_with_and_without_its_unit(
    time: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--watch 5s` once watched a group named 5s, and complained for ever that there is none."""
    done = call(capsys, "lag", "--watch", time)
    assert (done.code, done.out) == (2, "")
    assert "name at least one GROUP" in done.err


@pytest.mark.spec("SP-42")
def test_all_problems_of_a_job_are_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "ingest", "--trigger", "sometimes", "--start", "group", "--max-per-trigger", "0")
    assert done.code == 2
    problems = [line for line in done.err.splitlines() if line.startswith("  - ")]
    assert len(problems) == 7
    for name in (
        "--trigger",
        "--max-per-trigger",
        "--bootstrap",
        "--topics",
        "--sink",
        "--checkpoint",
        "--start",
    ):
        assert any(name in problem for problem in problems), name


def _without(package: str, folder: Path) -> str:
    """A PYTHONPATH on which the package is missing."""
    (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('gone', name={package!r})")
    return os.pathsep.join([str(folder), *sys.path])


@pytest.mark.parametrize("package", ["cyclopts", "rich"])
def test_without_the_extra_one_line_says_what_to_install(package: str, tmp_path: Path) -> None:
    done = run("lag", "g", PYTHONPATH=_without(package, tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == f"{MODULE}: {package} is not installed. Type: pip install 'kclient-kafka[cli]'\n"


@pytest.mark.parametrize("package", ["cyclopts", "rich"])
def test_without_the_extra_help_and_version_still_answer(package: str, tmp_path: Path) -> None:
    """Both once failed with code 2, and the version could not be had at all."""
    path = _without(package, tmp_path)
    done = run("--version", PYTHONPATH=path)
    assert (done.code, done.out, done.err) == (0, f"{metadata.version('kclient-kafka')}\n", "")
    for arguments in (["--help"], ["lag", "-h"]):
        page = run(*arguments, PYTHONPATH=path)
        assert (page.code, page.err) == (0, "")
        assert "Type: pip install 'kclient-kafka[cli]'" in page.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["version"], 0),
        (["completion", "bash"], 0),
        (["lag", "g", "-b", "127.0.0.1:1"], 3),
        (["ingest", "status", "--checkpoint", "nowhere"], 2),
        (["ingest", "gc", "--sink", "parquet:nowhere"], 2),
    ],
)
def test_commands_that_make_no_columns_need_no_pyarrow(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    done = run(*arguments, PYTHONPATH=_without("pyarrow", tmp_path))
    assert done.code == code, done.err
    assert "not installed" not in done.err


@pytest.mark.parametrize("command", ["ingest", "offsets-history"])
def test_those_that_do_name_the_extra_that_brings_it(command: str, tmp_path: Path) -> None:
    arguments = {
        "ingest": job("127.0.0.1:1", tmp_path),
        "offsets-history": ["offsets-history", "-b", "127.0.0.1:1", "--out", str(tmp_path)],
    }
    done = run(*arguments[command], PYTHONPATH=_without("pyarrow", tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"{MODULE} {command}: pyarrow is not installed. Type: pip install 'kclient-kafka[arrow]'\n"
    )


def test_the_installed_script_is_the_same_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program() == MODULE
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kclient", "lag"])
    assert program() == SCRIPT
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.scripts]\nkclient = "kclient.cli.main:main"' in project


def test_version_reports_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    [found] = call(capsys, "version", "--json").events
    assert found["kclient-kafka"] == metadata.version("kclient-kafka")
    assert found["python"].split(".")[:2] == [str(part) for part in sys.version_info[:2]]
    assert f"pyarrow        {metadata.version('pyarrow')}\n" in call(capsys, "version").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = call(capsys, "completion", shell).out
    for word in ("ingest", "lag", "checkpoint", "all-groups"):
        assert word in script


def test_the_completion_of_bash_completes() -> None:
    asks = (
        'eval "$1"; COMP_WORDS=(kclient ing); COMP_CWORD=1; COMP_LINE="kclient ing"; COMP_POINT=11; '
        '_kclient 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    script = run("completion", "bash").out
    shown = subprocess.run(
        ["bash", "-c", asks, "bash", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert shown.stdout.split() == ["ingest"]


def test_a_terminal_shows_help_without_colour_where_none_is_wanted() -> None:
    def shown(**environment: str) -> bytes:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, "topics", "--help"],
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
        os.close(theirs)
        page = b""
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # the end of a terminal
                break
            if not data:
                break
            page += data
        os.close(ours)
        assert process.wait(30) == 0
        return page

    coloured = re.compile(rb"\x1b\[[0-9;]*3[0-7]")
    assert coloured.search(shown(NO_COLOR=""))
    assert not coloured.search(shown(NO_COLOR="1"))


def test_what_other_tools_call_it_is_no_name_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """Each answer is for a command that exists, and about an option that this command does not have."""
    for command, options in OTHER_OPTIONS.items():
        page = call(capsys, *command.split(), "--help")
        assert page.code == 0, command
        named = re.findall(r"(?m)^│ (--\S+(?: --?\S+)*)", page.out)
        assert named, command
        assert not set(" ".join(named).split()) & set(options), command
    assert not {command[0] for command in COMMANDS} & set(OTHER_COMMANDS)
