"""Which assignors a configuration may name, and what the leader watches afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from kclient.errors import ConfigError
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.group.assignors import (
    COOPERATIVE,
    EAGER,
    Assignment,
    Assignor,
    Member,
    Topics,
    common_protocol,
    resolve_assignors,
)
from kclient.group.classic.leader import MetadataSnapshot, SubscriptionTracker, racks_of
from kclient.network.metadata import MetadataCache
from kclient.types import GroupMetadata, TopicPartition


class Own(Assignor):
    """An assignor of one's own that inherits what it does not care about."""

    name = "own"

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        return {member.member_id: Assignment() for member in members}


class Cooperative(Own):
    """One that is never used eagerly."""

    name = "cooperative"
    supported_protocols = (COOPERATIVE,)


class Both(Own):
    """One for a group on its way from the one protocol to the other."""

    name = "both"
    supported_protocols = (COOPERATIVE, EAGER)


class Odd(Own):
    """One that declares what does not exist."""

    name = "odd"
    supported_protocols = ("LAZY",)


@attrs.define
class Unrelated:
    """One that has the shape without inheriting it."""

    name: str = "unrelated"
    supported_protocols: Sequence[str] = ("EAGER",)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        return b"mine"

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        return {}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        pass


@pytest.mark.spec("B.16.8")
def test_names_and_objects_keep_their_order() -> None:
    chosen = resolve_assignors(("roundrobin", Own(), "range", Unrelated()))
    assert [assignor.name for assignor in chosen] == ["roundrobin", "own", "range", "unrelated"]


@pytest.mark.spec("B.16.8")
@pytest.mark.parametrize(
    ("strategies", "problem"),
    [
        ((), "at least one assignor"),
        (("uniform",), "no assignor is called 'uniform'"),
        (("range", "range"), "'range' is named twice"),
        ((object(),), "lacks one of name"),
        (
            (Odd(),),
            "declares supported_protocols ('LAZY',), which must be a list of 'EAGER' and 'COOPERATIVE'",
        ),
        (("range", Cooperative()), "the assignors range, cooperative have no rebalance protocol in common"),
    ],
)
def test_what_is_no_assignor_is_refused_with_the_key(strategies: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(ConfigError, match=r"partition_assignment_strategy.*") as caught:
        resolve_assignors(strategies)
    assert problem in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.spec("B.13.11", "B.16.8")
@pytest.mark.parametrize(
    ("strategies", "protocol"),
    [
        (("range",), EAGER),
        ((Both(),), COOPERATIVE),
        ((Cooperative(), Both()), COOPERATIVE),
        (("range", Both()), EAGER),
    ],
)
def test_a_member_rebalances_in_the_newest_way_that_all_its_assignors_support(
    strategies: tuple[Any, ...], protocol: str
) -> None:
    assert common_protocol(resolve_assignors(strategies)) == protocol


def cache(topics: dict[str, list[list[int]]], racks: dict[int, str], broken: str = "") -> MetadataCache:
    """Metadata: topic → for each partition its replicas; node → rack. A broken topic has no leader just now."""
    metadata = MetadataCache()
    described = [
        MetadataResponseTopic(
            name=name,
            error_code=5 if name == broken else 0,
            partitions=[
                MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=replicas)
                for index, replicas in enumerate(partitions)
            ],
        )
        for name, partitions in topics.items()
    ]
    brokers = [
        MetadataResponseBroker(node_id=node, host="h", port=1, rack=rack) for node, rack in racks.items()
    ]
    metadata.apply(MetadataResponse(brokers=brokers, topics=described), 12)
    return metadata


RACKS = {1: "a", 2: "b", 3: ""}


def assignment_snapshot(metadata: MetadataCache, *topics: str, by_rack: bool = True) -> MetadataSnapshot:
    return MetadataSnapshot(topics, by_rack, racks_of(metadata, topics, by_rack=by_rack))


@pytest.mark.spec("B.5.12", "B.16")
def test_the_racks_of_a_partition_are_those_of_all_its_replicas() -> None:
    metadata = cache({"flights": [[1, 2], [3], [9]]}, RACKS)
    assert racks_of(metadata, ["flights", "missing"], by_rack=True) == {
        "flights": [frozenset("ab"), frozenset(), frozenset()]
    }
    assert racks_of(metadata, ["flights"], by_rack=False) == {"flights": [frozenset()] * 3}


@pytest.mark.spec("B.13.2", "S3-29")
@pytest.mark.parametrize(
    ("after", "broken", "by_rack", "change"),
    [
        ({"flights": [[1], [1]]}, "", True, None),
        ({"flights": [[1], [1], [1]]}, "", True, "topic flights from 2 to 3 partitions"),
        ({}, "", True, "topic flights from 2 to 0 partitions"),
        ({"flights": [[1], [2]]}, "", True, "the racks of topic flights"),
        ({"flights": [[1], [2]]}, "", False, None),
        ({"flights": [[1], [1]]}, "flights", True, None),
    ],
    ids=["same", "more-partitions", "deleted", "racks", "racks-unwatched", "unavailable"],
)
def test_what_counts_as_a_change_of_the_leaders_topics(
    after: dict[str, list[list[int]]], broken: str, by_rack: bool, change: str | None
) -> None:
    before = assignment_snapshot(cache({"flights": [[1], [1]]}, RACKS), "flights", by_rack=by_rack)
    found = before.change(cache(after, RACKS, broken))
    assert found is None if change is None else change in (found or "")


@pytest.mark.spec("B.5.9", "B.13.2")
def test_to_forget_all_brokers_and_begin_again_is_no_change() -> None:
    metadata = cache({"flights": [[1], [2]]}, RACKS)
    before = assignment_snapshot(metadata, "flights")
    metadata.forget_brokers()
    assert before.change(metadata) is None


@pytest.mark.spec("D-14", "B.13.2")
def test_a_topic_that_did_not_exist_and_comes_is_a_change() -> None:
    before = assignment_snapshot(cache({}, RACKS), "flights")
    assert "from 0 to 1" in (before.change(cache({"flights": [[1]]}, RACKS)) or "")


def test_of_thousands_of_topics_the_reason_to_rejoin_names_those_that_came_and_went() -> None:
    wanted = SubscriptionTracker(joined_subscription=tuple(f"t{number:04}" for number in range(2_000)))
    wanted.subscribe([*wanted.joined_subscription[10:], "new"], None)
    assert wanted.rejoin_reason_for(cache({}, RACKS)) == (
        "subscription has changed since the last join: 1 (new) came, "
        "10 (t0000, t0001, t0002, t0003, t0004 and 5 more) went"
    )


@pytest.mark.spec("B.13.2", "S3-28", "S3-42", "S3-45")
def test_what_is_wanted_against_what_was_joined_with() -> None:
    wanted = SubscriptionTracker()
    wanted.subscribe(["b", "a", "b"], None)
    wanted.joined_subscription = wanted.topics or ()
    metadata = cache({}, RACKS)
    assert wanted.rejoin_reason_for(metadata) is None
    assert wanted.accept(Assignment((TopicPartition("a", 0),)))
    assert not wanted.accept(Assignment((TopicPartition("c", 0),)))
    wanted.subscribe(["a"], lambda topic: topic in ("a", "c"))
    assert (
        wanted.rejoin_reason_for(metadata)
        == "subscription has changed since the last join: none came, 1 (b) went"
    )
    wanted.joined_subscription = wanted.topics or ()
    assert wanted.accept(Assignment((TopicPartition("c", 0),)))
    assert (wanted.topics, wanted.rejoin_reason_for(metadata)) == (("a", "c"), None)
    assert not wanted.accept(Assignment((TopicPartition("d", 0),)))
