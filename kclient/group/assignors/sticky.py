"""`sticky` and `cooperative-sticky`: as even as possible, and members keep as much as that allows.

Both make the same plan. `sticky` belongs to eager groups, whose members revoke everything before they join: they send
the partitions that they owned in the user data. Members with `cooperative-sticky` keep their partitions while they join
and send them in the subscription; a partition that moves is left out until its owner has revoked it, and the group
joins once more.

The user data, byte for byte as Java writes it:

    sticky              int32 count; each topic: int16 length, UTF-8, int32 count, int32 partitions; int32 generation
    cooperative-sticky  int32 generation

Old members of `sticky` write no generation. There is no version number: the bytes left after the partitions decide.
Bytes that cannot be read are not an error: they come from other members, and without them the plan is only less sticky.
They count as no partitions of no generation, and trailing bytes are ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kclient.group.assignors.base import (
    COOPERATIVE,
    EAGER,
    Assignment,
    Assignor,
    Member,
    Subscription,
    Topics,
    as_assignments,
    utf16_key,
)
from kclient.group.assignors.constrained import share_evenly
from kclient.group.assignors.general import share_by_subscription
from kclient.group.assignors.java_order import in_map_order
from kclient.group.assignors.prior_ownership import NO_GENERATION, Claim, read_prior_ownership
from kclient.group.assignors.racks import Racks
from kclient.types import GroupMetadata, TopicPartition

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_INT32_BYTES: Final = 4


@attrs.frozen
class StickyUserData:
    """The partitions that a member had, in the order of the bytes; `generation` is None where it is not sent."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = NO_GENERATION


def encode_sticky(data: StickyUserData) -> bytes:
    """Return the user data of `sticky`; topics in the order in which they appear."""
    by_topic: dict[str, list[int]] = {}
    for partition in data.partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if data.generation is not None:
        parts.append(_INT32.pack(data.generation))
    return b"".join(parts)


def decode_sticky(blob: bytes | memoryview | None) -> StickyUserData:
    """Decode the user data of a member with `sticky`, with or without a generation."""
    blob = bytes(blob or b"")
    try:
        partitions, at = _read_partitions(blob)
    except (struct.error, UnicodeDecodeError):
        return StickyUserData()
    has_generation = at + _INT32_BYTES <= len(blob)
    return StickyUserData(tuple(partitions), _INT32.unpack_from(blob, at)[0] if has_generation else None)


def encode_cooperative(generation: int) -> bytes:
    """Return the user data of `cooperative-sticky`."""
    return _INT32.pack(generation)


def decode_cooperative(blob: bytes | memoryview | None) -> int:
    """Return the last generation of a member with `cooperative-sticky`, −1 if it cannot be read."""
    blob = bytes(blob or b"")
    generation: int = _INT32.unpack_from(blob)[0] if len(blob) >= _INT32_BYTES else NO_GENERATION
    return generation


def _read_partitions(blob: bytes) -> tuple[Iterable[TopicPartition], int]:
    """Return the partitions and the position after them. Raises struct.error if bytes are missing."""
    (topics,), at = _INT32.unpack_from(blob), _INT32_BYTES
    found: list[TopicPartition] = []
    for _ in range(_checked(topics, len(blob))):
        (length,) = _INT16.unpack_from(blob, at)
        name, at = _text(blob, at + _INT16.size, length)
        (count,) = _INT32.unpack_from(blob, at)
        numbers = struct.unpack_from(f">{_checked(count, len(blob))}i", blob, at + _INT32_BYTES)
        at += _INT32_BYTES * (1 + count)
        found += [TopicPartition(name, number) for number in numbers]
    return found, at


def _text(blob: bytes, at: int, length: int) -> tuple[str, int]:
    if not 0 <= length <= len(blob) - at:
        raise struct.error("a name is cut off")
    return blob[at : at + length].decode(), at + length


def _checked(count: int, most: int) -> int:
    """Return a count that the bytes left can hold: every entry takes bytes."""
    if not 0 <= count <= most:
        raise struct.error("a count that cannot be")
    return count


Shares = dict[str, list[TopicPartition]]
Had = Mapping[str, Container[TopicPartition]]


class StickyAssignor(Assignor):
    """The assignor that brokers and other clients know as `sticky`."""

    name = "sticky"

    def __init__(self) -> None:
        self._had: StickyUserData | None = None

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the last assignment and its generation; None before the first one."""
        return None if self._had is None else encode_sticky(self._had)

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Keep the assignment for the next rebalance."""
        self._had = StickyUserData(assignment.partitions, metadata.generation_id)

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Return a balanced plan that keeps what the members owned, as their user data says."""
        claims = {each.member_id: _previously_owned(each.subscription) for each in members}
        shares, _ = share_out(topics, members, claims)
        return as_assignments(shares)


class CooperativeStickyAssignor(Assignor):
    """The assignor that brokers and other clients know as `cooperative-sticky`."""

    name = "cooperative-sticky"
    supported_protocols: Sequence[str] = (COOPERATIVE, EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the generation of the last assignment; the partitions are in the subscription."""
        return encode_cooperative(self._generation)

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Keep the generation for the next rebalance."""
        self._generation = metadata.generation_id

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Assign so that members keep what they own, and leave out what another member still owns."""
        claims = {each.member_id: _owned(each.subscription) for each in members}
        shares, had = share_out(topics, members, claims)
        return as_assignments(_without_transfers(shares, had, claims))


def share_out(topics: Topics, members: Sequence[Member], claims: Mapping[str, Claim]) -> tuple[Shares, Had]:
    """Return the partitions of every member, and those that each owns already.

    If members contradict each other and subscribe to different topics, a member owns whatever it claims, as in Java.
    """
    wanted = dict.fromkeys(topic for member in members for topic in member.subscription.topics)
    known = {topic: topics[topic] for topic in sorted(wanted, key=utf16_key) if topics.get(topic)}
    past = read_prior_ownership({member_id: claims[member_id] for member_id in in_map_order(claims)}, known)
    if not known:
        return {member_id: [] for member_id in claims}, past.owned
    racks = Racks.between(known, members)
    if all(frozenset(member.subscription.topics) == wanted.keys() for member in members):
        return share_evenly(known, past, racks), past.undisputed()
    claimed = {member_id: frozenset(claim.partitions) for member_id, claim in claims.items()}
    return share_by_subscription(known, members, past, racks), claimed


def _previously_owned(subscription: Subscription) -> Claim:
    """Return what a member of an eager group owned, from its user data: it owns nothing when it joins."""
    had = decode_sticky(subscription.user_data)
    return Claim(had.partitions, NO_GENERATION if had.generation is None else had.generation)


def _owned(subscription: Subscription) -> Claim:
    """Return what a member still owns. Before subscription version 2 the generation is in the user data."""
    generation = subscription.generation_id
    if generation is None:
        generation = decode_cooperative(subscription.user_data)
    return Claim(subscription.owned_partitions, generation)


def _without_transfers(shares: Shares, had: Had, claims: Mapping[str, Claim]) -> Shares:
    """Leave out the partitions of each member that another member still owns."""
    claimed = {partition for claim in claims.values() for partition in claim.partitions}
    return {
        member_id: [each for each in partitions if each in had[member_id] or each not in claimed]
        for member_id, partitions in shares.items()
    }
