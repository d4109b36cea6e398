"""Every setting that an error text or a log line advises exists, with the unit that the text gives it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.config import load
from kclient.config.model import keys
from kclient.config.refused import REFUSED
from kclient.config.spellings import DIFFERENCES, NOT_NEEDED, OTHER_SPELLINGS, OWN_KEYS
from kclient.errors import ConfigError

ROOT = Path(__file__).parents[2]
KEYS = {key.name for key in keys()}
FIRST_WORDS = {name.partition("_")[0] for name in KEYS | set(REFUSED)} | {"queued", "socket", "api"}
SETTING = re.compile(rf"(?<![\w.$/'-])(?:{'|'.join(sorted(FIRST_WORDS))})(?:[_.][a-z]+)+\b(?![(\w]|\.\w)")
OF_BROKERS = {
    "auto.create.topics.enable",
    "connections.max.reauth.ms",
    "group.consumer.assignors",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "group.version",
    "sasl.enabled.mechanisms",
    "ssl.client.auth",
}
NO_SETTINGS = {  # of Python, of the API, of SQL
    "check_hostname",
    "client_host",
    "dead_letter",
    "key_size",
    "max_records",
    "on_assignment",
    "on_partitions_assigned",
    "on_partitions_lost",
    "on_partitions_revoked",
    "value_size",
}
UNITS = {"kbytes", "bytes", "ms", "seconds", "messages"}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The sentences of a module, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in alone else None
        if isinstance(text, str) and " " in text:
            yield node.lineno, text


def test_every_setting_in_a_text_exists() -> None:
    strange = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / "kclient").rglob("*.py"))
        if not {"generated", "embedded"} & set(path.parts)
        for line, text in texts(path)
        for name in sorted(set(SETTING.findall(text)) - OF_BROKERS - NO_SETTINGS)
        if name.replace(".", "_") not in KEYS | set(REFUSED)
    ]
    assert strange == []


def test_the_search_finds_settings() -> None:
    assert SETTING.findall("raise max_poll_interval_ms, or fetch.min.bytes: queued_max_kbytes.") == [
        "max_poll_interval_ms",
        "fetch.min.bytes",
        "queued_max_kbytes",
    ]


@pytest.mark.parametrize("written", sorted(OTHER_SPELLINGS))
def test_advice_says_whose_the_key_is_and_where_its_unit_differs(written: str) -> None:
    ours = OTHER_SPELLINGS[written]
    with pytest.raises(ConfigError) as caught:
        load({"bootstrap_servers": "localhost:9092", written: "1"})
    [problem] = caught.value.problems
    assert f"{'kclient' if ours in OWN_KEYS else 'Kafka'}'s own is {ours}" in problem
    theirs, unit = (({*name.split("_")} & UNITS) - {"messages"} for name in (written, ours))
    assert theirs == unit or DIFFERENCES[written] in problem


def test_the_keys_of_our_own_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    table = page.partition("## kclient's own keys")[2].partition("\n## ")[0]
    own = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert set(OTHER_SPELLINGS.values()) & own == OWN_KEYS
    assert set(OTHER_SPELLINGS) & set(NOT_NEEDED) == set()


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("queued_max_messages_kbytes", "kclient's own is buffer_memory_bytes, in bytes: multiply by 1,024"),
        ("queued_min_messages", "in bytes and not in messages"),
        ("enable_ssl_certificate_verification", "tls_insecure_skip_verify, true where yours is false"),
    ],
)
def test_advice_with_another_meaning_says_so(written: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        load({"bootstrap_servers": "localhost:9092", written: "1"})
