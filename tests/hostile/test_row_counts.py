"""Responses with fewer or more rows than were asked for: a command ends with an error of the broker, or goes on."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from kclient.protocol.message import Struct
from kclient.protocol.registry import message_class
from tests.lag.lag_setup import commit

COMMANDS = {
    ("topics", "describe", "orders"): ("Metadata", "ListOffsets", "DescribeConfigs", "DescribeLogDirs"),
    ("groups", "list"): ("ListGroups",),
    ("groups", "reset", "g", "--topic", "orders", "--to-latest", "--execute"): (
        "Metadata",
        "FindCoordinator",
        "DescribeGroups",
        "ConsumerGroupDescribe",
        "OffsetFetch",
        "OffsetCommit",
        "ListOffsets",
    ),
    ("groups", "delete", "g", "--execute"): ("DeleteGroups",),
    ("doctor", "--topic", "orders", "--group", "g"): ("Metadata", "FindCoordinator", "DescribeGroups"),
    ("produce", "orders"): ("Metadata", "Produce"),
    ("consume", "orders", "-e"): ("Metadata", "ListOffsets"),
}
CASES = [(command, api) for command, apis in COMMANDS.items() for api in apis]


def arrays(kind: type[Struct]) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays of structs in a message."""
    for field in kind.FIELDS:
        if field.struct is not None:
            yield (field.name,)
            yield from ((field.name, *rest) for rest in arrays(field.struct))


def change(message: Any, path: tuple[str, ...], times: int) -> None:
    name, *rest = path
    value = getattr(message, name)
    if not isinstance(value, list):
        return
    for inner in value if rest else ():
        change(inner, tuple(rest), times)
    if not rest:
        setattr(message, name, value * times)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 2}) as cluster:
        cluster.produce("orders", ["x"] * 10)
        yield cluster


@pytest.mark.parametrize(
    ("command", "api"), CASES, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_no_number_of_rows_ends_a_command_as_a_bug(
    command: tuple[str, ...],
    api: str,
    cluster: EmbeddedCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [
        "-b",
        cluster.bootstrap_servers,
        "--set",
        "default.api.timeout.ms=500",
        "--set",
        "client.id=teller",
    ]
    for path in arrays(message_class(f"{api}Response")):
        for times in (0, 2):
            commit(cluster.bootstrap_servers, "g", {TopicPartition("orders", 0): 0})
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"x\n"))))

            def edit(request: Any, response: Any, path: tuple[str, ...] = path, times: int = times) -> Any:
                change(response, path, times)
                return response

            rule = cluster.on(api, edit, client_id="teller")
            main([*command, *words])
            cluster.lift(rule)
            shown = capsys.readouterr()
            assert "KC-901" not in shown.out + shown.err, (path, times)
