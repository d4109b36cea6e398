"""Which offsets close() commits: those of records that the application has finished, and no others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, RebalanceListener
from kclient.embedded import EmbeddedCluster
from tests.scenarios.support import SETTINGS, T0, consumer_of

RECORDS = 10
DIES_AT = 4
RELEASED, IN_HAND = DIES_AT, DIES_AT + 1


class HandlerError(Exception):
    """A record cannot be processed."""


def handle(record: Any, error: type[BaseException] = HandlerError) -> None:
    if record.offset == DIES_AT:
        raise error


# --- threads

Loop = Callable[[Consumer], None]


def iterate(c: Consumer, error: type[BaseException] = HandlerError) -> None:
    for record in c:
        handle(record, error)


def poll_batches(c: Consumer) -> None:
    while True:
        for record in c.poll(1.0, max_records=RELEASED if c.position(T0) == 0 else None):
            handle(record)


def in_a_with_block(c: Consumer, loop: Loop) -> None:
    with c:
        loop(c)


def in_a_finally(c: Consumer, loop: Loop) -> None:
    try:
        loop(c)
    finally:
        c.close()


def by_contextlib_closing(c: Consumer, loop: Loop) -> None:
    with contextlib.closing(c):
        loop(c)


def by_an_exit_stack(c: Consumer, loop: Loop) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(c.close)
        loop(c)


def in_an_except(c: Consumer, loop: Loop) -> None:
    try:
        loop(c)
    except BaseException:
        c.close()
        raise


def of_a_generator(c: Consumer, loop: Loop) -> None:
    def records() -> Iterator[Any]:
        try:
            yield from c
        finally:
            c.close()

    for record in records():
        handle(record)


WAYS = [
    in_a_with_block,
    in_a_finally,
    by_contextlib_closing,
    by_an_exit_stack,
    in_an_except,
    of_a_generator,
]


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("loop", [iterate, poll_batches])
@pytest.mark.parametrize("way", WAYS)
def test_a_thread_whose_handler_raises_commits_what_it_came_back_from(
    cluster: EmbeddedCluster, way: Callable[[Consumer, Loop], None], loop: Loop
) -> None:
    with pytest.raises(HandlerError):
        way(assigned(cluster), loop)
    assert cluster.committed("g") == {T0: RELEASED}


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_leaves_the_current_record_uncommitted(
    cluster: EmbeddedCluster, error: type[BaseException]
) -> None:
    c = assigned(cluster)
    with pytest.raises(error):
        in_a_finally(c, lambda c: iterate(c, error))
    assert cluster.committed("g") == {T0: RELEASED}


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("way", [in_a_with_block, in_a_finally, by_contextlib_closing])
def test_a_loop_that_is_left_by_a_break_commits_the_current_record(
    cluster: EmbeddedCluster, way: Callable[[Consumer, Loop], None]
) -> None:
    def loop(c: Consumer) -> None:
        for record in c:
            if record.offset == DIES_AT:
                break

    way(assigned(cluster), loop)
    assert cluster.committed("g") == {T0: IN_HAND}


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("way", [in_a_with_block, in_a_finally])
def test_an_exception_from_before_the_records_says_nothing_about_them(
    cluster: EmbeddedCluster, way: Callable[[Consumer, Loop], None]
) -> None:
    def loop(c: Consumer) -> None:
        assert len(c.poll(5.0)) == RECORDS

    try:
        raise HandlerError
    except HandlerError:
        way(assigned(cluster), loop)
    assert cluster.committed("g") == {T0: RECORDS}


@pytest.mark.spec("I-01", "U-02")
def test_what_the_application_has_handled_counts_as_processed(cluster: EmbeddedCluster) -> None:
    c = assigned(cluster)
    try:
        iterate(c)
    except HandlerError:
        logging.getLogger(__name__).info("left out")
    c.close()
    assert cluster.committed("g") == {T0: IN_HAND}


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("closes", ["the thread that reads", "another"])
def test_only_the_reading_thread_commits_its_current_record(cluster: EmbeddedCluster, closes: str) -> None:
    c = assigned(cluster)

    def read() -> None:
        for record in c:
            if record.offset == DIES_AT:
                break
        if closes != "another":
            c.close()

    reader = threading.Thread(target=read)
    reader.start()
    reader.join()
    c.close()
    assert cluster.committed("g") == {T0: RELEASED if closes == "another" else IN_HAND}


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
        cluster.prepare_groups()
        cluster.produce("t", [f"v{number}" for number in range(RECORDS)])
        yield cluster


@pytest.fixture
def cluster(shared_cluster: EmbeddedCluster) -> EmbeddedCluster:
    """With ten records, and none committed."""
    with Consumer(bootstrap_servers=shared_cluster.bootstrap_servers, group_id="g", **SETTINGS) as c:
        c.commit({T0: OffsetAndMetadata(0)})
    return shared_cluster


def assigned(cluster: EmbeddedCluster) -> Consumer:
    c = Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="g",
        **{**SETTINGS, "enable_auto_commit": True, "auto_commit_interval_ms": 60_000},
    )
    c.assign([T0])
    return c


# --- tasks

Handler = Callable[[Any], Awaitable[None]]


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("way", ["async with", "finally", "exit stack", "except", "generator", "wait_for"])
def test_a_task_whose_handler_raises_commits_what_it_came_back_from(way: str) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        with pytest.raises(HandlerError):
            await ASYNC_WAYS[way](c)

    assert committed_after(scenario) == RELEASED


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("swallows", [True, False])
@pytest.mark.parametrize("batches", [True, False])
def test_a_lifespan_that_cancels_its_loop_leaves_the_current_record_uncommitted(
    awaited: bool, swallows: bool, batches: bool
) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        in_hand = asyncio.Event()

        async def loop() -> None:
            with contextlib.suppress(*[asyncio.CancelledError][: int(swallows)]):
                await (_poll if batches else _iterate)(c, stuck)

        async def stuck(record: Any) -> None:
            if record.offset == DIES_AT:
                in_hand.set()
                await asyncio.sleep(60)

        async with c:
            task = asyncio.create_task(loop())
            await in_hand.wait()
            task.cancel()
            if awaited:
                await asyncio.wait([task])
        await asyncio.wait([task])

    assert committed_after(scenario) == RELEASED


@pytest.mark.spec("I-01", "U-02")
def test_a_task_that_swallows_its_own_cancellation_leaves_the_current_record_uncommitted() -> None:
    async def scenario(c: AsyncConsumer) -> None:
        async def main() -> None:
            async with c:
                with contextlib.suppress(asyncio.CancelledError):
                    await _iterate(c, cancelled)

        async def cancelled(record: Any) -> None:
            if record.offset == DIES_AT:
                task.cancel()
                await asyncio.sleep(60)

        task = asyncio.create_task(main())
        await task

    assert committed_after(scenario) == RELEASED


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize(
    ("ends", "expected"), [("raises", RELEASED), ("goes on", RELEASED), ("returns", IN_HAND)]
)
def test_what_a_task_took_is_committed_by_another_only_if_it_came_to_a_good_end(
    ends: str, expected: int
) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        in_hand = asyncio.Event()

        async def loop() -> None:
            async for record in c:
                if record.offset == DIES_AT:
                    break
            in_hand.set()
            if ends == "raises":
                raise HandlerError
            while ends == "goes on":  # noqa: ASYNC110
                await asyncio.sleep(0.01)

        task = asyncio.create_task(loop())
        await in_hand.wait()
        await asyncio.sleep(0)
        await c.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert committed_after(scenario) == expected


@pytest.mark.spec("I-01", "U-02")
def test_asyncio_logs_the_error_of_a_task_that_is_never_awaited() -> None:
    logged: list[str] = []

    async def scenario(c: AsyncConsumer) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))
        task = asyncio.create_task(_iterate(c, _handle))
        await asyncio.wait([task])
        await c.close()

    assert committed_after(scenario) == RELEASED
    assert logged == ["Task exception was never retrieved"]


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("cancelled_before", [True, False])
def test_a_loop_of_a_task_that_is_left_by_a_break_commits_the_current_record(cancelled_before: bool) -> None:
    """A cancellation before the records were taken, which the task has swallowed, says nothing about them."""

    async def scenario(c: AsyncConsumer) -> None:
        if cancelled_before:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        async for record in c:
            if record.offset == DIES_AT:
                break
        await c.close()

    assert committed_after(scenario) == IN_HAND


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize(("ends", "expected"), [("raises", 0), ("is cancelled", 0), ("returns", 1)])
def test_records_are_the_task_s_that_asks_and_not_the_one_s_that_waits_for_them(
    ends: str, expected: int, batches: bool
) -> None:
    """`wait_for` before Python 3.12, `gather` and `create_task` run the call in a task that ends with it."""

    async def scenario(c: AsyncConsumer) -> None:
        in_hand = asyncio.Event()

        async def loop() -> None:
            await asyncio.create_task(c.poll(5.0, max_records=1) if batches else anext(c))
            in_hand.set()
            if ends == "raises":
                raise HandlerError
            if ends == "is cancelled":
                await asyncio.sleep(60)

        task = asyncio.create_task(loop())
        await in_hand.wait()
        if ends == "is cancelled":
            task.cancel()
        await asyncio.wait([task])
        await c.close()
        assert task.cancelled() or (task.exception() is not None) == (ends == "raises")

    assert committed_after(scenario) == (expected if batches else 0)


class Storing(RebalanceListener):
    """Commits what goes, as docs/rebalances.md shows it."""

    def __init__(self, c: AsyncConsumer) -> None:
        self.consumer = c

    async def on_partitions_revoked(self, partitions: Any) -> None:
        self.position = await self.consumer.position(T0)
        await self.consumer.commit()


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("automatic", [True, False])
@pytest.mark.parametrize(("raises", "expected"), [(True, RELEASED), (False, IN_HAND)])
def test_a_listener_of_an_interrupted_application_does_not_commit_the_current_record(
    protocol: str, automatic: bool, raises: bool, expected: int
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            cluster.produce("t", [f"v{number}" for number in range(RECORDS)])
            c = consumer_of(cluster, group_id="g", group_protocol=protocol, enable_auto_commit=automatic)
            listener = Storing(c)
            await c.subscribe(["t"], listener=listener)
            with contextlib.suppress(HandlerError):
                async with c:
                    async for record in c:
                        if record.offset == DIES_AT:
                            if raises:
                                raise HandlerError
                            break
            assert (listener.position, cluster.committed("g")[T0]) == (expected, expected)

    asyncio.run(scenario())


class StoringThread(RebalanceListener):
    """Commits what its consumer, which has no loop of its own, gives up."""

    def __init__(self, c: Consumer) -> None:
        self.consumer = c

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.consumer.commit()


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("raises", "expected"), [(True, RELEASED), (False, IN_HAND)])
def test_nor_does_it_while_such_an_application_unsubscribes(
    cluster: EmbeddedCluster, protocol: str, raises: bool, expected: int
) -> None:
    cluster.prepare_groups()
    settings = {**SETTINGS, "group_id": f"unsubscribes-{protocol}-{raises}", "group_protocol": protocol}
    c = Consumer(bootstrap_servers=cluster.bootstrap_servers, **{**settings, "enable_auto_commit": False})
    c.subscribe(["t"], listener=StoringThread(c))
    with contextlib.suppress(HandlerError):
        try:
            for record in c:
                if record.offset == DIES_AT:
                    if raises:
                        raise HandlerError
                    break
        finally:
            c.unsubscribe()
            c.close()
    assert cluster.committed(settings["group_id"])[T0] == expected


async def _handle(record: Any) -> None:
    handle(record)


async def _iterate(c: AsyncConsumer, handler: Handler) -> None:
    async for record in c:
        await handler(record)


async def _poll(c: AsyncConsumer, handler: Handler) -> None:
    while True:
        for record in await c.poll(1.0, max_records=RELEASED if await c.position(T0) == 0 else None):
            await handler(record)


async def _in_an_async_with(c: AsyncConsumer) -> None:
    async with c:
        await _iterate(c, _handle)


async def _in_a_finally(c: AsyncConsumer) -> None:
    try:
        await _poll(c, _handle)
    finally:
        await c.close()


async def _by_an_exit_stack(c: AsyncConsumer) -> None:
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(c.close)
        await _iterate(c, _handle)


async def _in_an_except(c: AsyncConsumer) -> None:
    try:
        await _iterate(c, _handle)
    except HandlerError:
        await c.close()
        raise


async def _of_a_generator(c: AsyncConsumer) -> None:
    async def records() -> AsyncIterator[Any]:
        try:
            async for record in c:
                yield record
        finally:
            await c.close()

    async with contextlib.aclosing(records()) as found:
        async for record in found:
            handle(record)


async def _by_wait_for(c: AsyncConsumer) -> None:
    try:
        await _iterate(c, _handle)
    finally:
        await asyncio.wait_for(c.close(), 10)


ASYNC_WAYS: dict[str, Callable[[AsyncConsumer], Awaitable[None]]] = {
    "async with": _in_an_async_with,
    "finally": _in_a_finally,
    "exit stack": _by_an_exit_stack,
    "except": _in_an_except,
    "generator": _of_a_generator,
    "wait_for": _by_wait_for,
}


def committed_after(scenario: Callable[[AsyncConsumer], Awaitable[None]]) -> int:
    """Play a scenario with a consumer of ten records; what its group has committed then."""
    committed: list[int] = []

    async def run() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            cluster.produce("t", [f"v{number}" for number in range(RECORDS)])
            keys = {"enable_auto_commit": True, "auto_commit_interval_ms": 60_000}
            c = consumer_of(cluster, group_id="g", **keys)
            await c.assign([T0])
            await scenario(c)
            committed.append(cluster.committed("g")[T0])

    async def in_a_task() -> None:
        await asyncio.create_task(run())  # its own exception handler, its own cancellations

    asyncio.run(asyncio.wait_for(in_a_task(), 20))
    return committed[0]


# --- consumers that cannot commit


def test_close_logs_that_a_removed_member_could_not_commit(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Its records are read again, and nothing else would say why."""
    keys = {**SETTINGS, "enable_auto_commit": True, "heartbeat_interval_ms": 100, "group_protocol": "classic"}
    with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id="g", **keys) as c:
        assert len(c.poll(10)) > 0
        cluster.expire_member("g", c.group_metadata().member_id)
        deadline = time.monotonic() + 20
        while c.group_metadata().generation_id >= 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with caplog.at_level(logging.WARNING, "kclient.commit"):
            c.close()
    assert "no automatic commit on close: this consumer is not a member any more" in caplog.text
