"""Short scripts for bugs of closing that few drawn seeds show: each says what is wrong under a seed."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.simulation.world import World, run
from tests.simulation.mutants.scripts import HERE, with_cluster
from tests.simulation.mutants.table import Symptoms

COMMITS = 3
CLOSE_SECONDS = 2.0  # less than a request may take


class Unwell(Exception):
    """Raised by a callback."""


def commit_before_connected(seed: int) -> Symptoms:
    """An asynchronous commit of a consumer that was not connected yet has an outcome when it is closed. I-24."""
    return run(seed, lambda world: with_cluster(world, _commit_and_close), limit=600.0).result


def commit_without_answer(seed: int) -> Symptoms:
    """So has one that the coordinator does not answer in time. I-24."""
    return run(seed, lambda world: with_cluster(world, _commit_in_vain), limit=600.0).result


def callbacks_that_raise(seed: int) -> Symptoms:
    """And each callback has its turn, whatever the others raise. I-24."""
    return run(seed, lambda world: with_cluster(world, _raise_in_callbacks), limit=600.0).result


def another_thread_closes(seed: int) -> Symptoms:
    """The current record of a thread is not committed when another thread closes. Threads are real. I-01."""
    with EmbeddedCluster(topics={HERE.topic: 1}) as cluster:
        cluster.prepare_groups()
        cluster.produce(HERE.topic, [b"one", b"two"])
        consumer = Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="readers")
        consumer.assign([HERE])
        consumer.seek_to_beginning()
        reader = threading.Thread(target=lambda: next(iter(consumer)))
        reader.start()
        reader.join()
        consumer.close()
        committed = cluster.committed("readers").get(HERE, 0)
        return [("I-01", f"committed is {committed} of records that are in hand")] if committed else []


async def _commit_and_close(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    heard = _commit(consumer)
    await consumer.close(CLOSE_SECONDS)
    return _unheard(heard)


async def _commit_in_vain(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    cluster.delay("OffsetCommit", 60_000)
    heard = _commit(consumer)
    await consumer.close(CLOSE_SECONDS)
    return _unheard(heard)


async def _raise_in_callbacks(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    heard = _commit(consumer, Unwell)
    with suppress(Unwell):
        await consumer.close(CLOSE_SECONDS)
    return _unheard(heard)


def _commit(consumer: AsyncConsumer, problem: type[Exception] | None = None) -> list[Any]:
    """Some asynchronous commits; their callbacks note the outcomes, and may raise."""
    heard: list[Any] = []

    def callback(offsets: Any, error: Any) -> None:
        heard.append(error)
        if problem is not None:
            raise problem

    for number in range(COMMITS):
        consumer.commit_async({HERE: OffsetAndMetadata(number)}, callback)
    return heard


def _unheard(heard: list[Any]) -> Symptoms:
    if len(heard) == COMMITS:
        return []
    return [
        ("I-24", f"{COMMITS - len(heard)} of {COMMITS} asynchronous commits have no outcome after close()")
    ]
