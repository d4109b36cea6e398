"""Which partition of `__consumer_offsets` a group belongs to, against Java's own results."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import group
from kclient.errors import ArgumentError
from kclient.group.offsets_topic import java_hash, offsets_topic_partition
from tests.group.vectors import vectors

CASES = [case for case in vectors("hashes") if case["kind"] == "group_partition"]


@pytest.mark.spec("S1-10", "S1-37", "S4-12", "B.20", "D-70")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_java_maps_the_group_to_the_same_partition(case: dict[str, Any]) -> None:
    assert java_hash(case["group"]) == case["java_hash"]
    for count, partition in case["partition"].items():
        assert offsets_topic_partition(case["group"], int(count)) == partition


@pytest.mark.spec("S1-10", "B.20")
def test_the_smallest_hash_maps_to_partition_zero() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert offsets_topic_partition("polygenelubricants", 50) == 0


@pytest.mark.spec("S1-10", "S4-12", "B.20", "D-70")
@pytest.mark.parametrize(
    ("group_id", "hashed", "of_50", "of_3"),
    [
        ("", 0, 0, 0),
        ("a", 97, 47, 1),
        ("test", 3556498, 48, 1),
        ("my-group", -1906497762, 12, 0),
        ("test-group", 627841412, 12, 2),
        ("kclient", -884099082, 32, 0),
        ("console-consumer-12345", 158455506, 6, 0),
        ("polygenelubricants", -2147483648, 0, 0),
        ("群组", 1045408, 8, 1),
        ("group-😀", 508083057, 7, 0),  # two UTF-16 code units, four bytes of UTF-8
        ("KafkaConsumerGroup", 1210994371, 21, 1),
    ],
)
def test_names_and_their_partitions(group_id: str, hashed: int, of_50: int, of_3: int) -> None:
    assert java_hash(group_id) == hashed
    assert offsets_topic_partition(group_id, 50) == group.offsets_topic_partition(group_id, 50) == of_50
    assert offsets_topic_partition(group_id, 3) == of_3


@pytest.mark.parametrize("count", [0, -1])
def test_no_topic_is_without_partitions(count: int) -> None:
    with pytest.raises(ArgumentError, match="at least one partition"):
        group.offsets_topic_partition("g", count)
