"""Which partition of `__consumer_offsets` a group belongs to, against Java's own results."""

from __future__ import annotations

from typing import Any

import pytest

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
