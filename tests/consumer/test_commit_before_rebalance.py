"""The automatic commit before a rebalance takes no longer than leaves time to join."""

from __future__ import annotations

import pytest

from tests.scenarios.members import ALL, publishing, team, until
from tests.scenarios.simulated import Place, simulate


@pytest.mark.spec("S3-30", "B.13.6", "B.14.8", "I-12")
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_commit_that_never_succeeds_costs_nobody_the_membership(assignor: str) -> None:
    """As with partitions that were deleted: the coordinator knows them no more, however often it is asked."""

    async def scenario(place: Place) -> None:
        limits = {
            "max_poll_interval_ms": 30_000,
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 3_000,
        }
        async with (
            team(
                place,
                enable_auto_commit=True,
                auto_commit_interval_ms=1_000,
                partition_assignment_strategy=assignor,
                **limits,
            ) as join,
            publishing(place),
        ):
            first = await join("first")
            await until(lambda: first.partitions == ALL and first.seen)
            place.cluster.fail("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", times=None)
            second = await join("second")
            await until(lambda: len(first.partitions) == len(second.partitions) == 2, 120)
            assert {told.method for told in first.told} == {"assigned", "revoked"}
            place.cluster.lift()

    simulate(scenario, topics={"t": 4})
