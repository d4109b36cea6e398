"""Every string of every response that a client uses, made hostile: nothing of it reaches a log, an error or a terminal.

The fields are those of the schemas, so a field that a later version brings is tried too. All the consumers run at
once, each with one field of its own; `kclient lag` runs for one field after the other.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from kclient.protocol.message import Struct, within
from kclient.protocol.registry import message_class
from kclient.text import LONGEST_TEXT
from tests.lag.lag_setup import commit

EVIL = "evil\x1b[2J\r\n\x9b1m\u202e\x00" + "x" * 6_000
SHOWN = r"evil\x1b[2J\r\n"
MEMBER = [
    "ApiVersions",
    "Metadata",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetFetch",
    "OffsetCommit",
    "ListOffsets",
    "OffsetForLeaderEpoch",
    "Fetch",
    "ConsumerGroupHeartbeat",
]
LAG = [
    "Metadata",
    "FindCoordinator",
    "ListGroups",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "OffsetFetch",
    "ListOffsets",
]
LOOKED_AT = ["Metadata", "FindCoordinator", "ListGroups", "DescribeConfigs"]
Path = tuple[str, ...]


def strings(kind: type[Struct], version: int) -> Iterator[Path]:
    """The paths of all strings that a message has in a version."""
    for field in kind.FIELDS:
        if not within(version, field.versions):
            continue
        if field.struct is not None:
            yield from ((field.name, *rest) for rest in strings(field.struct, version))
        elif field.element == "string":
            yield (field.name,)


def cases(apis: list[str]) -> list[tuple[str, Path]]:
    kinds = [(api, message_class(f"{api}Response")) for api in apis]
    return [(api, path) for api, kind in kinds for path in strings(kind, kind.VERSIONS[1])]


def spoil(message: Any, path: Path) -> None:
    """Put the hostile text wherever the path leads; an explanation comes with an error."""
    name, *rest = path
    value = getattr(message, name)
    if rest:
        for inner in value if isinstance(value, list) else [value] * (value is not None):
            spoil(inner, tuple(rest))
        return
    setattr(message, name, [EVIL] if isinstance(value, list) else EVIL)
    if name == "error_message":
        message.error_code = 42


def spoiling(path: Path) -> Any:
    def edit(request: Any, response: Any) -> Any:
        spoil(response, path)
        return response

    return edit


class Heard(logging.Handler):
    """All that kclient logs, as a file would have it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        # A traceback has lines on purpose.
        self.lines += text.splitlines() if record.exc_info else [text]
        self.lines += [
            value for value in vars(record).values() if isinstance(value, str) and EVIL[:5] in value
        ]


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, logger = Heard(), logging.getLogger("kclient")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(before)
    logger.removeHandler(handler)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2}) as cluster:
        cluster.produce("orders", ["x"] * 10)
        yield cluster


async def use(cluster: EmbeddedCluster, number: int, protocol: str) -> list[str]:
    """What a consumer does in its life; the texts of its errors."""
    texts: list[str] = []
    consumer = AsyncConsumer(
        "orders",
        bootstrap_servers=cluster.bootstrap_servers,
        client_id=f"c{number}",
        group_id=f"g{number}",
        group_protocol=protocol,
        request_timeout_ms=800,
        default_api_timeout_ms=800,
        on_no_committed_offset="earliest",
    )
    tp = TopicPartition("orders", 0)
    steps = [
        lambda: consumer.poll(0.6),
        lambda: consumer.poll(0.6),
        consumer.commit,
        lambda: consumer.committed([tp]),
        lambda: consumer.end_offsets([tp]),
        consumer.list_topics,
        lambda: consumer.partitions_for("orders"),
        lambda: consumer.close(1.0),
    ]
    for step in steps:
        try:
            await step()
        except Exception as exc:  # noqa: BLE001 – whatever a user could see
            texts += texts_of(exc)
    texts.append(str(consumer))
    return texts


def texts_of(error: BaseException | None) -> list[str]:
    """What a user sees of an error: its text, its notes, its causes, and its lines of a traceback."""
    if error is None:
        return []
    lines = [line.rstrip("\n") for line in traceback.format_exception_only(error)]
    return [*lines, str(error), *getattr(error, "__notes__", ()), *texts_of(error.__cause__)]


def unfit(texts: list[str]) -> list[str]:
    return [repr(text)[:300] for text in texts if not text.isprintable() or len(text) > LONGEST_TEXT + 200]


def test_no_string_of_a_response_steers_a_log_or_an_error(cluster: EmbeddedCluster, heard: Heard) -> None:
    tried = [(*case, protocol) for case in cases(MEMBER) for protocol in ("classic", "consumer")]

    async def scene() -> list[str]:
        for number, (api, path, _) in enumerate(tried):
            cluster.on(api, spoiling(path), client_id=f"c{number}")
        lives = [use(cluster, number, protocol) for number, (_, _, protocol) in enumerate(tried)]
        return [text for life in await asyncio.gather(*lives) for text in life]

    texts = asyncio.run(scene())
    assert unfit(texts) == []
    assert unfit(heard.lines) == []
    assert sum(SHOWN in text for text in texts) >= 5
    assert sum(SHOWN in line for line in heard.lines) >= 5


def test_no_string_of_a_response_steers_a_terminal(
    cluster: EmbeddedCluster, heard: Heard, capfd: pytest.CaptureFixture[str]
) -> None:
    async def take_part() -> None:
        keys: dict[str, Any] = {"group_id": "g", "client_id": "member"}
        async with AsyncConsumer("orders", bootstrap_servers=cluster.bootstrap_servers, **keys) as consumer:
            while not consumer.assignment():
                await consumer.poll(0.1)
            await consumer.commit()
            for api, path in cases(LAG):
                rule = cluster.on(api, spoiling(path), client_id="teller")
                words = ["-b", cluster.bootstrap_servers, "--timeout", "500ms", "--set", "client.id=teller"]
                for asked in (["g"], ["--all-groups"]):
                    await asyncio.to_thread(main, ["lag", *asked, *words])
                cluster.lift(rule)

    asyncio.run(take_part())
    shown = capfd.readouterr()
    lines = [*shown.out.split("\n"), *shown.err.split("\n")]
    assert unfit(lines) == []
    assert unfit(heard.lines) == []
    assert sum(SHOWN in line for line in lines) >= 5


def test_no_string_of_a_response_steers_a_terminal_through_other_commands(
    cluster: EmbeddedCluster, heard: Heard, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("short", config={"retention.ms": "60000"})
    commit(cluster.bootstrap_servers, "g", {TopicPartition("orders", 0): 0})
    words = [
        "-b",
        cluster.bootstrap_servers,
        "--set",
        "default.api.timeout.ms=500",
        "--set",
        "client.id=teller",
    ]
    for api, path in cases(LOOKED_AT):
        rule = cluster.on(api, spoiling(path), client_id="teller")
        for command in (
            ["topics", "describe", "short"],
            ["groups"],
            ["doctor", "--topic", "orders", "--group", "g"],
        ):
            main([*command, *words])
        cluster.lift(rule)
    shown = capfd.readouterr()
    lines = [*shown.out.split("\n"), *shown.err.split("\n")]
    assert unfit(lines) == []
    assert unfit(heard.lines) == []
    assert sum(SHOWN in line for line in lines) >= 5
