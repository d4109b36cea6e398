"""docs/security.md: its blocks run, and the bounds that it names are those of the code."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kclient.config import load
from kclient.config.kerberos import kerberos_login
from kclient.group.assignors.validate import MAX_UNKNOWN_PARTITIONS
from kclient.network import (
    connection,
    metadata,
    sasl,
    ticket_source,
    token_endpoint,
    token_providers,
    transport,
)
from kclient.protocol import struct_limit
from kclient.security.scram import MAX_ITERATIONS
from kclient.text import LONGEST_NAME, LONGEST_TEXT
from tests.docs.blocks import python_blocks
from tests.security.certificates import Authority

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
MIB = 1 << 20


def test_the_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Authority().write_pem(tmp_path / "ca.pem")
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    block = python_blocks(PAGE)[0]
    scope: dict[str, object] = {}
    exec(compile(block.replace("/etc/kafka/ca.pem", str(tmp_path / "ca.pem")), "security.md", "exec"), scope)
    assert "secret" not in repr(scope["consumer"])


def test_the_block_with_a_token_endpoint_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "secret")
    scope: dict[str, object] = {}
    exec(compile(python_blocks(PAGE)[1], "security.md", "exec"), scope)
    assert "secret" not in repr(scope["consumer"])


def test_the_block_with_a_function_runs() -> None:
    vault = SimpleNamespace(kafka_token=lambda: {"token": "abc", "seconds": 60})
    scope: dict[str, Any] = {"my_vault": vault}
    exec(compile(python_blocks(PAGE)[2], "security.md", "exec"), scope)
    token = scope["token"]()
    assert token.value == "abc"
    assert 50 < token.expires_at - time.time() <= 60


def test_the_blocks_of_kerberos_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_source, "gssapi_package", object)
    monkeypatch.setattr(ticket_source, "check_keytab", lambda keytab, principal: None)
    (block,) = (each for each in python_blocks(PAGE) if "GSSAPI" in each)
    scope: dict[str, Any] = {}
    exec(compile(block, "security.md", "exec"), scope)
    scope["consumer"].close()
    (properties,) = re.findall(r"^```properties\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "client.properties").write_text(properties)
    config = load({}, properties=tmp_path / "client.properties")
    login = kerberos_login(config.sasl_kerberos_service_name, config.sasl_jaas_config)
    assert (login.service, login.keytab) == ("kafka", "/etc/security/billing.keytab")
    assert f'principal="{login.principal}"' in block


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (
            "`max_frame_bytes` (100 MiB)",
            load({"bootstrap_servers": "localhost:9092"}).max_frame_bytes == 100 * MIB,
        ),
        (
            "2 MiB for each connection, then eight times",
            (transport.FIRST_BYTES, transport.GROWTH) == (2 * MIB, 8),
        ),
        ("16 MiB are kept for the next ones", transport.KEPT_BYTES == 16 * MIB),
        ("250,000; Metadata about named topics", struct_limit.MOST_STRUCTS == 250_000),
        (
            "100,000 and 1,000 for each",
            connection.MOST_OF_NO_TOPIC == 100_000 and connection.PARTITIONS_PER_TOPIC == 1_000,
        ),
        ("about all topics 1,000,000", connection.MOST_OF_ALL_TOPICS == 1_000_000),
        ("| broker | 10,000 |", metadata.MOST_BROKERS == 10_000),
        ("twice over, and 1,000", MAX_UNKNOWN_PARTITIONS == 1_000),
        ("one second or longer", sasl.SHORTEST_SESSION_MS == 1_000),
        ("(131,072), and 10 s", MAX_ITERATIONS == 131_072 and sasl.DERIVE_SECONDS == 10),
        ("10 s to connect and 10 s more", token_providers.DEFAULT_TIMEOUT_MS == 10_000),
        ("an answer 1 MiB", token_endpoint.MOST_BYTES == MIB),
        ("300 characters of a name", LONGEST_NAME == 300),
        ("16,384 of a whole text", LONGEST_TEXT == 16_384),
    ],
)
def test_the_bounds_are_those_of_the_code(words: str, value: bool) -> None:
    assert words in PAGE
    assert value


def test_the_threat_model_names_the_attackers_and_is_linked() -> None:
    policy = (ROOT / "SECURITY.md").read_text()
    assert [f"| **{letter}** |" in policy for letter in "PMBRL"] == [True] * 5
    assert "docs/security.md" in policy
    assert "docs/security.md" in (ROOT / "README.md").read_text()
