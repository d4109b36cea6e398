"""One member's next step from what it owns to what it should own. A pure function.

First a member gives up what its target lacks; until it says that it has, it stays in its old epoch. Then it moves to
the target's epoch and is given what is free. The rest of its target it gets when the others have given it up. So no
partition is ever with two members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from kclient.embedded.groups.consumer.member import Member, MemberState
from kclient.embedded.groups.consumer.partitions import TopicIdPartition

Owned = Collection[TopicIdPartition] | None
"""What the member says that it owns; None where it did not say."""

Free = Callable[[TopicIdPartition], bool]
"""Whether no other member holds a partition."""


def reconcile(
    member: Member, target: Collection[TopicIdPartition], epoch: int, owned: Owned, free: Free
) -> Member:
    """The member after its heartbeat; `target` is what it should own in `epoch`."""
    match member.state:
        case MemberState.STABLE if member.epoch == epoch and set(member.assigned) <= set(target):
            return member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(owned, member.revoking):
            return member
        case _:
            return _step(member, target, epoch, owned, free)


def _step(
    member: Member, target: Collection[TopicIdPartition], epoch: int, owned: Owned, free: Free
) -> Member:
    kept = {one: since for one, since in member.assigned.items() if one in target}
    lost = {one: since for one, since in member.assigned.items() if one not in target}
    if _still_owns(owned, lost):
        return attrs.evolve(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=lost,
        )
    wanted = [one for one in target if one not in kept]
    given = dict.fromkeys((one for one in wanted if free(one)), epoch)
    return attrs.evolve(
        member,
        state=MemberState.STABLE if len(given) == len(wanted) else MemberState.UNRELEASED_PARTITIONS,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=dict(sorted({**kept, **given}.items())),
        revoking={},
    )


def _still_owns(owned: Owned, lost: Collection[TopicIdPartition]) -> bool:
    """A member that does not say what it owns is taken to own what it owned."""
    return bool(lost) and (owned is None or any(one in lost for one in owned))
