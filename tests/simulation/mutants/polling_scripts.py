"""Short scripts for the order inside a poll: an application that errs and retries with pauses, and commits between
assign and poll."""

from __future__ import annotations

import asyncio
from typing import Any

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError, NoOffsetError
from kclient.simulation.world import World, run
from tests.simulation.mutants.scripts import HERE, PATIENCE, RECORDS, SETTINGS, Use, with_cluster
from tests.simulation.mutants.table import Look, Symptoms

MAX_POLL_SECONDS = SETTINGS["max_poll_interval_ms"] / 1000
FIRST = RECORDS // 2  # what is committed


def _look(use: Use) -> Look:
    return lambda seed: run(seed, lambda world: with_cluster(world, use), limit=6_000.0).result


def _consumer(world: World, *topics: str, **settings: Any) -> AsyncConsumer:
    runtime = world.runtime("client")
    return AsyncConsumer(
        *topics, bootstrap_servers="broker:9092", runtime=runtime, **{**SETTINGS, **settings}
    )


async def _log_and_retry(consumer: AsyncConsumer, pause: float) -> None:
    while True:
        try:
            await consumer.poll(1.0)
        except KclientError:
            await asyncio.sleep(pause)


async def _err_in_a_group(world: World, cluster: EmbeddedCluster, pause: float) -> Symptoms:
    """A member that may not look up where to begin logs the error and pauses, while another one joins."""
    cluster.fail("ListOffsets", "TOPIC_AUTHORIZATION_FAILED", times=None)
    async with (
        _consumer(world, HERE.topic) as erring,
        _consumer(world, HERE.topic) as other,
    ):
        tasks = [asyncio.create_task(_log_and_retry(erring, pause))]
        await asyncio.sleep(
            PATIENCE + 5.0
        )  # soon after a poll: the group waits nearly a whole pause for the next
        before = erring.group_metadata().member_id
        tasks.append(asyncio.create_task(_log_and_retry(other, pause)))
        await asyncio.sleep(4 * MAX_POLL_SECONDS)
        after = erring.group_metadata()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if before and before == after.member_id and after.generation_id >= 0:
        return []
    return [("I-28", f"a member that polled in time, and raised, is {after} and was {before!r}")]


async def _err_and_pause(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    return await _err_in_a_group(world, cluster, pause=2.0)


async def _err_and_pause_long(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    return await _err_in_a_group(world, cluster, pause=0.8 * MAX_POLL_SECONDS)


async def _commit_then_poll(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    async with _consumer(world, auto_offset_reset="earliest") as reader:
        await reader.end_offsets([HERE])
        await reader.assign([HERE])
        await asyncio.sleep(1.0)
        await reader.commit({HERE: OffsetAndMetadata(FIRST)})
        while not (records := await reader.poll(1.0)):
            continue
    first = next(iter(records)).offset
    return (
        [] if first == FIRST else [("I-07", f"began at {first}, and {FIRST} was committed before the poll")]
    )


async def _connect_only(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    async with _consumer(world, HERE.topic) as member:
        await member.partitions_for(HERE.topic)
        cluster.forget_requests()
        await asyncio.sleep(PATIENCE)
        asked = {one.api for one in cluster.requests} & {
            "FindCoordinator",
            "JoinGroup",
            "ConsumerGroupHeartbeat",
        }
    return [("I-28", f"a consumer that has not polled asked for {sorted(asked)}")] if asked else []


async def _commit_as_advised(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    async with _consumer(world, auto_offset_reset="none") as reader:
        await reader.assign([HERE])
        try:
            while True:
                await reader.poll(1.0)
        except NoOffsetError:
            await asyncio.sleep(1.0)
        await reader.commit({HERE: OffsetAndMetadata(FIRST)})
        try:
            await reader.poll(5.0)
        except NoOffsetError:
            return [("I-15", "no offset is committed, says the poll after the commit")]
    return []


erring_member = _look(_err_and_pause)
"""Who polls in time stays a member, also if every poll raises. I-28."""
slowly_erring_member = _look(_err_and_pause_long)
"""The same with pauses of nearly max.poll.interval: one poll takes all the steps before a join. I-28."""
early_commit = _look(_commit_then_poll)
"""A commit between assign and the first poll says where reading begins. I-07."""
connected_only = _look(_connect_only)
"""Who has not polled takes no part in the group. I-28."""
advised_commit = _look(_commit_as_advised)
"""What was committed after the error is what the next poll finds. I-15."""
