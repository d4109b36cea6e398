"""What the settings of fetching bring about between this client and a broker, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from kclient.embedded.observer import LoggedRequest
from kclient.types import TopicPartition
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0

ROUND_TRIP = 0.02


def arrived_after(settings: dict[str, int], *sizes: int, pause: float = 0.1) -> float:
    """How long after the first of several records, written one by one, a poll returned what was there then."""

    async def scenario(place: Place) -> float:
        consumer = place.consumer(**settings)
        await place.on_member(consumer.assign([T0]))
        assert not await place.on_member(consumer.poll(5.0))
        asked = len(place.asked("Fetch"))
        while len(place.asked("Fetch")) == asked:  # until one has just come to the broker, where it waits
            await place.on_member(consumer.poll(ROUND_TRIP))
        began = place.now
        for number, size in enumerate(sizes):
            place.cluster.produce("t", [b"x" * size])
            if number + 1 < len(sizes):
                await asyncio.sleep(pause)
        assert len(await place.on_member(consumer.poll(60.0))) == len(sizes)
        return place.now - began

    return simulate(scenario, topics={"t": 1}).result


@pytest.mark.spec("S2-01")
def test_a_response_waits_for_so_many_bytes() -> None:
    at_once = {"fetch_min_bytes": 1, "fetch_max_wait_ms": 2_000}
    assert arrived_after(at_once, 10) < 3 * ROUND_TRIP
    patient = {"fetch_min_bytes": 1_000, "fetch_max_wait_ms": 2_000}
    assert arrived_after(patient, 2_000) < 3 * ROUND_TRIP
    assert 0.2 <= arrived_after(patient, 300, 300, 300) < 0.2 + 3 * ROUND_TRIP


@pytest.mark.spec("S2-02")
@pytest.mark.parametrize("wait_ms", [200, 2_000])
def test_a_response_waits_for_so_long(wait_ms: int) -> None:
    settings = {"fetch_min_bytes": 1_000, "fetch_max_wait_ms": wait_ms}
    waited = arrived_after(settings, 10)
    assert wait_ms / 1000 - 4 * ROUND_TRIP <= waited <= wait_ms / 1000 + 3 * ROUND_TRIP


def gaps(requests: list[LoggedRequest]) -> list[float]:
    return [after.at - before.at for before, after in itertools.pairwise(requests)]


@pytest.mark.spec("S2-04", "I-26", "D-13")
@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("ListOffsets", "OFFSET_NOT_AVAILABLE"),
        ("Fetch", "UNKNOWN_LEADER_EPOCH"),
        ("Metadata", "LEADER_NOT_AVAILABLE"),
    ],
)
def test_what_fails_is_asked_again_with_growing_pauses(api: str, error: str) -> None:
    """From retry_backoff_ms on, twice as long each time, a fifth more or less, up to retry_backoff_max_ms."""
    times = 7

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        settings: dict[str, Any] = {
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1_000,
            "fetch_max_wait_ms": 10,
        }
        place.cluster.fail(api, error=error, times=times, only_if=lambda request: place.now > 0)
        consumer = place.consumer("t", **settings, group_id="g")
        await place.read(consumer, 1)
        pauses = gaps(place.asked(api)[: times + 1])
        assert len(pauses) == times
        for step, pause in enumerate(pauses):
            middle = min(0.1 * 2**step, 1.0)
            assert 0.8 * middle <= pause <= min(1.2 * middle, 1.0) + 2 * ROUND_TRIP, (step, pauses)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("D-59", "B.10.5")
@pytest.mark.parametrize("release", ["1.0", "4.3"])
def test_a_partition_that_never_ends_starves_no_other(release: str) -> None:
    """Seen: no rotation. One response holds the records of one partition alone, whichever is named first."""

    async def scenario(place: Place) -> None:
        large = b"x" * 60_000
        for partition in [0, 1, 2, 3] * 40:
            place.cluster.produce("t", [large], partition=partition)
        settings = {
            "max_partition_fetch_bytes": 50_000,
            "fetch_max_bytes": 50_000,
            "buffer_memory_bytes": 60_000,
        }
        consumer = place.consumer(**settings)
        partitions = [TopicPartition("t", number) for number in range(4)]
        await place.on_member(consumer.assign(partitions))
        served = [record.partition for record in await place.read(consumer, 40)]
        assert all(set(served[at : at + 8]) == {0, 1, 2, 3} for at in range(33)), served

    simulate(scenario, release=release, topics={"t": 4})
