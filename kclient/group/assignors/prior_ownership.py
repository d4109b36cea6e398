"""The owners of partitions before this rebalance, as the members claim.

Claims come from other members and may contradict each other, after a member was away while its partitions went to
other members. The newer generation is right; of two members of one generation neither is.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.group.assignors.base import Topics
from kclient.types import TopicPartition

NO_GENERATION = -1


@attrs.frozen
class Claim:
    """The partitions that a member claims to have owned, and the generation of the claim, −1 if it has none."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


@attrs.define
class PriorOwnership:
    """`owned` are each member's partitions without those that it lost to a better claim, in the order of its claim.

    `disputed` partitions were claimed twice in one generation. `earlier` is the owner of a partition in a generation
    before the newest one, even if another member owns it now.
    """

    owned: dict[str, dict[TopicPartition, None]]
    disputed: set[TopicPartition] = attrs.field(factory=set)
    earlier: dict[TopicPartition, str] = attrs.field(factory=dict)

    def undisputed(self) -> dict[str, dict[TopicPartition, None]]:
        """Return the partitions of each member that no other member claims in the same generation."""
        return {
            member_id: dict.fromkeys(each for each in owned if each not in self.disputed)
            for member_id, owned in self.owned.items()
        }


def read_prior_ownership(claims: Mapping[str, Claim], topics: Topics) -> PriorOwnership:
    """Decide between the claims of all members, in their order. Partitions that no longer exist are left out."""
    past = PriorOwnership({})
    owners: dict[TopicPartition, str] = {}
    for member_id, claim in claims.items():
        past.owned[member_id] = {}
        for partition in dict.fromkeys(claim.partitions):
            if 0 <= partition.partition < len(topics.get(partition.topic, ())):
                _settle(past, owners, partition, member_id, claims)
    _find_earlier(past, claims)
    return past


def _settle(
    past: PriorOwnership,
    owners: dict[TopicPartition, str],
    partition: TopicPartition,
    member_id: str,
    claims: Mapping[str, Claim],
) -> None:
    """Compare one claim with the best one so far."""
    rival = owners.get(partition)
    ahead = 1 if rival is None else claims[member_id].generation - claims[rival].generation
    if ahead < 0:
        return
    owners[partition] = member_id
    if rival is not None:
        past.owned[rival].pop(partition, None)
    if ahead:
        past.owned[member_id][partition] = None
    else:
        past.disputed.add(partition)


def _find_earlier(past: PriorOwnership, claims: Mapping[str, Claim]) -> None:
    newest = max((claim.generation for claim in claims.values()), default=NO_GENERATION)
    when: dict[TopicPartition, int] = {}
    for member_id, claim in claims.items():
        if claim.generation < newest:
            for partition in claim.partitions:
                if claim.generation > when.get(partition, NO_GENERATION - 1):
                    when[partition] = claim.generation
                    past.earlier[partition] = member_id
