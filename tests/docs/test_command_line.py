"""docs/command-line.md: its commands run in order against one cluster, and print what the page shows.

`…` on the page stands for what differs each time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.cli import app
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from kclient.embedded.flights import Flights
from kclient.runtime import Runtime

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
SCREENS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PATIENCE = 60


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The cluster of the page, the profile dev that names it, and `kclient` on the path."""
    (tmp_path / "kclient").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kclient "$@"\n')
    (tmp_path / "kclient").chmod(0o755)
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        Flights(cluster, Runtime()).begin(10_000)
        profiles = tmp_path / "profiles.toml"
        profiles.write_text(f'[dev]\nbootstrap.servers = "{cluster.bootstrap_servers}"\n')
        yield {
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "KCLIENT_PROFILES": str(profiles),
            "KCLIENT_PROFILE": "dev",
        }


def commands() -> list[tuple[str, str]]:
    """Each command of the page with what the page shows after it."""
    return [
        (command, shown)
        for screen in SCREENS
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", screen, re.MULTILINE)
    ]


def test_the_commands_print_what_the_page_shows(environment: dict[str, str], tmp_path: Path) -> None:
    found = commands()
    assert len(found) > 15
    for command, shown in found:
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        printed = done.stdout.decode().replace("python -m kclient", "kclient")
        pattern = re.escape(shown).replace("…", ".*?")
        assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {command}\n{printed}"


def test_every_command_is_on_the_page() -> None:
    names = {name for name in app.build() if not name.startswith("-")}
    assert {name for name in names if f"kclient {name}" not in PAGE} == set()


def test_every_option_of_consume_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consume", "--help"]) == 0
    boxes = "".join(line for line in capsys.readouterr().out.splitlines() if line.startswith("│"))
    connection = {
        "--bootstrap",
        "--bootstrap-servers",
        "-b",
        "--properties",
        "--config",
        "--profile",
        "--set",
    }
    options = set(re.findall(r"(?<![\w'-])(--[a-z-]+|-[A-Za-z])\b", boxes)) - connection
    rows = "".join(re.findall(r"^\| `-.*", PAGE, re.MULTILINE))
    assert {one for one in options if f"`{one}`" not in rows} == {"-1"} & options


def test_the_exit_codes_are_those_of_the_help_page() -> None:
    codes = dict(re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE))
    assert len(codes) == 10
    for code, words in re.findall(r"(\d+) ([a-z ]+)[,.]", app.EPILOGUE):
        assert codes[code].startswith(words), code
