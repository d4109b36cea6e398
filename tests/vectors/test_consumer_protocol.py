"""The blobs that group members exchange, at the level of their messages: the version in front, then the fields.

What members make of a blob (which version they write, none for -1, sorted topics) is the group's business.
"""

from __future__ import annotations

from typing import Any

import pytest

from kclient import protocol
from kclient.errors import ProtocolDecodeError
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message
from tests.vectors.cases import Case, vectors

CASES = vectors("consumer_protocol")
MESSAGES = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


def read(case: Case) -> tuple[Message, int, int]:
    """The message in the blob, the version it was read in, and the offset after it."""
    data = bytes.fromhex(case["hex"])
    version = min(int.from_bytes(data[:2], signed=True), 3)
    message, end = read_message(MESSAGES[case["kind"]], version, data, 2)
    return message, version, end


def as_java_tells(message: Any, kind: str) -> dict[str, Any]:
    """The message's fields in the words of the vectors."""
    user_data = None if message.user_data is None else message.user_data.hex()
    if kind == "assignment":
        return {"partitions": pairs(message.assigned_partitions), "user_data": user_data}
    return {
        "topics": message.topics,
        "user_data": user_data,
        "owned_partitions": pairs(message.owned_partitions),
        "generation_id": None if message.generation_id < 0 else message.generation_id,
        "rack_id": message.rack_id or None,
    }


def pairs(topics: list[Any]) -> list[list[Any]]:
    return [[one.topic, partition] for one in topics for partition in one.partitions]


@pytest.mark.spec("H-19")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_java_blobs_are_read_and_written_back(case: Case) -> None:
    if case.get("refused"):
        with pytest.raises(ProtocolDecodeError):
            read(case)
        return
    message, version, end = read(case)
    assert as_java_tells(message, case["kind"]) == case["decoded"]
    if not case.get("decode_only"):
        data = bytes.fromhex(case["hex"])
        assert (version, end) == (case["version"], len(data))
        assert protocol.encode(message, version) == data[2:]
