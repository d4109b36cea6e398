"""The user data of the sticky assignors: what Java wrote is read as Java reads it, and written back byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.group.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    Member,
    StickyAssignor,
    Subscription,
)
from kclient.group.assignors.sticky import (
    StickyUserData,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kclient.types import GroupMetadata, TopicPartition
from tests.group.vectors import vectors

CASES = vectors("sticky_user_data")
WRITTEN = [case for case in CASES if case["kind"] == "sticky" and not case.get("decode_only")]
DAMAGED = [case for case in CASES if case.get("decode_only")]
COOPERATIVE = [case for case in CASES if case["kind"] == "cooperative-sticky"]


def name_of(case: dict[str, Any]) -> str:
    return str(case["case"])


def test_no_case_is_left_out() -> None:
    assert (len(WRITTEN), len(DAMAGED), len(COOPERATIVE)) == (42, 5, 7)


@pytest.mark.spec("D-63", "B.16.3")
@pytest.mark.parametrize("case", WRITTEN, ids=name_of)
def test_java_bytes_are_read_and_written_back(case: dict[str, Any]) -> None:
    blob = bytes.fromhex(case["hex"])
    found = decode_sticky(blob)
    assert sorted(found.partitions) == sorted(TopicPartition(*pair) for pair in case["partitions"])
    assert found.generation == case["generation"]
    assert encode_sticky(found) == blob


@pytest.mark.spec("D-63", "B.16.3")
@pytest.mark.parametrize("case", COOPERATIVE, ids=name_of)
def test_the_generation_alone_is_what_cooperative_members_report(case: dict[str, Any]) -> None:
    assert decode_cooperative(bytes.fromhex(case["hex"])) == case["generation"]
    assert encode_cooperative(case["generation"]).hex() == case["hex"]


@pytest.mark.spec("B.16.7", "D-63")
@pytest.mark.parametrize("case", [case for case in WRITTEN if case["generation"] is not None], ids=name_of)
def test_a_sticky_member_reports_its_last_assignment_as_java_does(case: dict[str, Any]) -> None:
    assignor = StickyAssignor()
    assert assignor.subscription_user_data(("any",)) is None
    had = decode_sticky(bytes.fromhex(case["hex"])).partitions  # in the order of Java's map
    assignor.on_assignment(Assignment((TopicPartition("before", 1),)), GroupMetadata("g", 1))
    assignor.on_assignment(Assignment(had), GroupMetadata("g", case["generation"]))
    assert assignor.subscription_user_data(("any",)) == bytes.fromhex(case["hex"])


@pytest.mark.spec("B.16.7", "D-63")
@pytest.mark.parametrize("case", COOPERATIVE, ids=name_of)
def test_a_cooperative_member_reports_the_generation_of_its_last_assignment(case: dict[str, Any]) -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.subscription_user_data(()) == encode_cooperative(-1)
    assignor.on_assignment(
        Assignment((TopicPartition("flights", 1),)), GroupMetadata("g", case["generation"])
    )
    assert assignor.subscription_user_data(()) == bytes.fromhex(case["hex"])


@pytest.mark.spec("B.16.3", "B.16.7", "S3-46")
def test_an_old_members_claim_counts_by_the_generation_in_its_user_data() -> None:
    """Subscriptions of version 1 have owned partitions and no generation: Java's members send it in user data."""
    partition = TopicPartition("flights", 0)

    def member(name: str, generation: int) -> Member:
        subscription = Subscription(("flights",), encode_cooperative(generation), (partition,))
        return Member(name, subscription)

    for newer, older in (("a", "b"), ("b", "a")):
        plan = CooperativeStickyAssignor().assign(
            {"flights": [frozenset()]}, [member(newer, 7), member(older, 6)]
        )
        assert plan[newer].partitions == (partition,)


@pytest.mark.spec("D-63", "B.16.3", "H-19")
@pytest.mark.parametrize("case", DAMAGED, ids=name_of)
def test_what_java_cannot_read_is_no_past(case: dict[str, Any]) -> None:
    assert decode_sticky(bytes.fromhex(case["hex"])) == StickyUserData((), case["generation"])


@pytest.mark.spec("D-63", "H-19")
@pytest.mark.parametrize("case", WRITTEN[:8], ids=name_of)
def test_every_cut_is_read_as_no_past_or_as_what_was_left_of_it(case: dict[str, Any]) -> None:
    blob = bytes.fromhex(case["hex"])
    whole = decode_sticky(blob)
    for size in range(len(blob)):
        found = decode_sticky(blob[:size])
        assert found in (StickyUserData(), StickyUserData(whole.partitions, None)), size


@pytest.mark.spec("D-63", "H-19")
@pytest.mark.parametrize(
    "blob", [None, b"", b"\xff" * 40, b"\0\0\0\1\0\1t\x7f\xff\xff\xff", b"\0\0\0\1\0\2\xff\xfe\0\0\0\0"]
)
def test_nothing_that_a_member_sends_is_an_error(blob: bytes | None) -> None:
    assert decode_sticky(blob) == StickyUserData()
    assert decode_cooperative(blob if blob is None else blob[:3]) == -1
