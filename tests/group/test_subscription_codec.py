"""Subscriptions and assignments against the blobs that Java wrote, and blobs that no client should have written."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.errors import ProtocolDecodeError
from kclient.group.assignors import Assignment, Subscription
from kclient.group.subscription_codec import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kclient.types import TopicPartition
from tests.group.vectors import vectors

CASES = vectors("consumer_protocol")
WRITTEN = [case for case in CASES if "given" in case]
READ = [case for case in CASES if "decoded" in case]
REFUSED = [case for case in CASES if case.get("refused")]


def user_data(fields: dict[str, Any]) -> bytes | None:
    return None if fields["user_data"] is None else bytes.fromhex(fields["user_data"])


def subscription(fields: dict[str, Any]) -> Subscription:
    return Subscription(
        topics=tuple(fields["topics"]),
        user_data=user_data(fields),
        owned_partitions=tuple(TopicPartition(*owned) for owned in fields["owned_partitions"]),
        generation_id=fields["generation_id"],
        rack_id=fields["rack_id"],
    )


def assignment(fields: dict[str, Any]) -> Assignment:
    return Assignment(tuple(TopicPartition(*given) for given in fields["partitions"]), user_data(fields))


def test_every_case_is_written_read_or_refused() -> None:
    assert (len(WRITTEN), len(READ), len(REFUSED)) == (64, 91, 37)


@pytest.mark.spec("S4-22", "B.13.4", "D-73")
@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case["case"])
def test_we_write_the_bytes_that_java_writes(case: dict[str, Any]) -> None:
    if case["kind"] == "subscription":
        blob = encode_subscription(subscription(case["given"]), case["version"])
    else:
        blob = encode_assignment(assignment(case["given"]), case["version"])
    assert blob.hex() == case["hex"]


@pytest.mark.spec("S3-41", "B.13.4", "H-19")
@pytest.mark.parametrize("case", READ, ids=lambda case: case["case"])
def test_we_read_what_java_reads(case: dict[str, Any]) -> None:
    blob = bytes.fromhex(case["hex"])
    if case["kind"] == "subscription":
        assert decode_subscription(blob) == subscription(case["decoded"])
    else:
        assert decode_assignment(blob) == assignment(case["decoded"])


@pytest.mark.spec("S3-41", "H-19")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["case"])
def test_we_refuse_what_java_refuses(case: dict[str, Any]) -> None:
    decode = decode_subscription if case["kind"] == "subscription" else decode_assignment
    with pytest.raises(ProtocolDecodeError):
        decode(bytes.fromhex(case["hex"]))


@pytest.mark.spec("S3-40")
@pytest.mark.parametrize("blob", [b"", b"\x00"])
def test_an_assignment_too_short_for_its_version_is_refused(blob: bytes) -> None:
    with pytest.raises(ProtocolDecodeError, match="too short for its version"):
        decode_assignment(blob)


@pytest.mark.spec("H-19")
@pytest.mark.parametrize("case", READ[:12], ids=lambda case: case["case"])
def test_every_cut_of_a_blob_is_refused_or_shorter(case: dict[str, Any]) -> None:
    decode = decode_subscription if case["kind"] == "subscription" else decode_assignment
    blob = bytes.fromhex(case["hex"])
    for length in range(len(blob)):
        try:
            decode(blob[:length])
        except ProtocolDecodeError:
            continue
        assert "trailing" in case["case"] or "future" in case["case"]
