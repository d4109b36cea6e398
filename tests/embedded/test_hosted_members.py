"""Classic members in a consumer group where time, settings or another coordinator matter; the conformance suite has
what a real broker can be asked."""

from __future__ import annotations

import attrs
import pytest

from kclient.embedded.groups import inspection
from kclient.protocol import errors
from tests.embedded.consumer_member import Member, described
from tests.embedded.grouping import GROUP, World, blob, play, stable
from tests.embedded.grouping import Member as ClassicMember

pytestmark = pytest.mark.spec("B.17.6")

REBALANCE_MS = 8_000


async def mixed(world: World) -> tuple[Member, ClassicMember]:
    """A classic member with everything, and a new one that has joined and waits for its half."""
    old = world.member(rebalance_ms=REBALANCE_MS, session_ms=30_000)
    await stable(world, old)
    new = Member(world.raw_client, GROUP, "new")
    assert (await new.join("orders")).error_code == errors.NONE
    return new, old


async def members(world: World) -> list[str]:
    return [member.member_id for member in (await described(world.raw_client, GROUP)).members]


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced() -> None:
    async def scenario(world: World) -> None:
        _new, old = await mixed(world)
        assert await old.heartbeat() == errors.REBALANCE_IN_PROGRESS
        world.pass_time(REBALANCE_MS / 1000 - 3)
        assert await old.heartbeat() == errors.REBALANCE_IN_PROGRESS
        world.pass_time(3.1)
        assert await members(world) == ["new"]
        assert await old.heartbeat() == errors.UNKNOWN_MEMBER_ID

    play(scenario, brokers=1)


def test_a_classic_member_that_does_not_sync_in_time_is_fenced() -> None:
    async def scenario(world: World) -> None:
        _new, old = await mixed(world)
        await old.join()
        world.pass_time(REBALANCE_MS / 1000 + 0.1)
        assert await members(world) == ["new"]

    play(scenario, brokers=1)


def test_a_classic_member_has_its_own_session_timeout() -> None:
    async def scenario(world: World) -> None:
        old = world.member(session_ms=6_000, rebalance_ms=60_000)
        await stable(world, old)
        new = Member(world.raw_client, GROUP, "new")
        await new.join("orders")
        world.pass_time(6.1)
        assert await members(world) == ["new"]

    play(scenario, brokers=1)


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DISABLED"])
def test_a_classic_group_stays_classic_where_the_policy_says_so(policy: str) -> None:
    async def scenario(world: World) -> None:
        await stable(world, world.member())
        response = await Member(world.raw_client, GROUP, "new").join("orders")
        assert response.error_code == errors.GROUP_ID_NOT_FOUND
        text = f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled."
        assert response.error_message == text
        assert world.group.kind == "classic"

    play(scenario, brokers=1, group_consumer_migration_policy=policy)


def test_a_classic_group_that_is_too_large_stays_classic() -> None:
    async def scenario(world: World) -> None:
        await stable(world, world.member(), world.member())
        response = await Member(world.raw_client, GROUP, "new").join("orders")
        assert response.error_message == (
            f"Cannot upgrade classic group {GROUP} to consumer group "
            "because the group size exceeds the consumer group maximum size."
        )

    play(scenario, brokers=1, group_consumer_max_size=1)


@pytest.mark.parametrize(
    ("policy", "kind"), [("upgrade", "consumer"), ("bidirectional", "classic"), ("Bidirectional", "classic")]
)
def test_when_the_last_new_member_leaves_the_policy_decides(policy: str, kind: str) -> None:
    async def scenario(world: World) -> None:
        new, old = await mixed(world)
        await new.beat(-1)
        assert world.group.kind == kind
        assert list(world.group.members) == [old.member_id]

    play(scenario, brokers=1, group_consumer_migration_policy=policy)


@pytest.mark.spec("C.4", "A-05")
def test_another_coordinator_reads_a_mixed_group_back() -> None:
    async def scenario(world: World) -> None:
        first = world.cluster.coordinator_of(GROUP)
        old = world.member(protocols=(("range", blob("orders")), ("sticky", blob("orders", user_data=b"x"))))
        await stable(world, old)
        assert (
            await Member(world.raw_client, GROUP, "new").join("orders", node=first)
        ).error_code == errors.NONE
        before = world.group
        world.cluster.kill(first)
        after = inspection.find(world.state, GROUP)
        assert after is not None
        assert after is not before
        names = ("epoch", "metadata_hash", "assignment_epoch", "members", "targets", "patterns", "holders")
        assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]
        assert attrs.asdict(after.members[old.member_id].classic) == {
            "session_timeout_ms": 10_000,
            "protocols": old.protocols,
        }
        assert await old.heartbeat() == errors.REBALANCE_IN_PROGRESS

    play(scenario)
