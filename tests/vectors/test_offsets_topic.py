"""Records of `__consumer_offsets`: the int16 in front says what the key is, and in which version the value."""

from __future__ import annotations

import pytest

from kclient import protocol
from kclient.protocol.registry import MESSAGES
from tests.vectors.cases import Case, vectors

CASES = vectors("offsets_topic")
KEYS = {entry.api_key: name for name, entry in MESSAGES.items() if entry.type == "coordinator-key"}


def check(name: str, version: int, data: bytes, fields: dict[str, object]) -> None:
    message = protocol.decode(name, version, data)
    assert protocol.to_json(message, version) == fields
    assert protocol.encode(message, version) == data
    assert protocol.encode(protocol.from_json(name, version, fields), version) == data


@pytest.mark.spec("C.4", "S1-01")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_java_records_are_read_and_written_back(case: Case) -> None:
    key = bytes.fromhex(case["key_hex"])
    assert KEYS[int.from_bytes(key[:2], signed=True)] == case["key_message"]
    check(case["key_message"], 0, key[2:], case["key"])
    if case["value_hex"] is None:
        assert case["value"] is None  # a tombstone
        return
    value = bytes.fromhex(case["value_hex"])
    assert int.from_bytes(value[:2], signed=True) == case["value_version"]
    check(case["value_message"], case["value_version"], value[2:], case["value"])
