"""Interceptors: which calls they see, what they may change, and that their errors break nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError
from kclient.records.records import Records

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
KEYS: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}


class Seen:
    """Records the calls that it gets."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.consumed: list[list[int]] = []
        self.committed: list[dict[TopicPartition, OffsetAndMetadata]] = []
        self.threads: set[str] = set()
        self.closed = 0

    def configure(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_consume(self, records: Records[Any, Any]) -> None:
        self.threads.add(threading.current_thread().name)
        self.consumed.append([record.offset for record in records])

    def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.threads.add(threading.current_thread().name)
        self.committed.append(offsets)

    def close(self) -> None:
        self.closed += 1


class SeenAsync:
    """The same with coroutines that wait."""

    def __init__(self) -> None:
        self.seen = Seen()

    async def on_consume(self, records: Records[Any, Any]) -> None:
        await asyncio.sleep(0.01)
        self.seen.on_consume(records)

    async def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        await asyncio.sleep(0.01)
        self.seen.on_commit(offsets)

    async def close(self) -> None:
        await asyncio.sleep(0.01)
        self.seen.close()


class FirstPartition:
    """Leaves out everything but partition 0."""

    def on_consume(self, records: Records[Any, Any]) -> Records[Any, Any]:
        return records.of(T0)


class Raises:
    """Raises in every call."""

    def on_consume(self, records: Records[Any, Any]) -> None:
        raise RuntimeError("no")

    def on_commit(self, offsets: object) -> None:
        raise RuntimeError("no")

    def close(self) -> None:
        raise RuntimeError("no")


def with_cluster(scenario: Callable[[EmbeddedCluster], Awaitable[None]]) -> None:
    async def run() -> None:
        options: dict[str, Any] = {
            "topics": {"t": 2},
            "config": {"group.initial.rebalance.delay.ms": 0},
        }
        async with EmbeddedCluster(brokers=1, **options) as cluster:
            cluster.produce("t", [b"v"] * 3, partition=0)
            cluster.produce("t", [b"v"] * 2, partition=1)
            await scenario(cluster)

    asyncio.run(asyncio.wait_for(run(), 60))


def consumer_of(cluster: EmbeddedCluster, *interceptors: Any, **settings: Any) -> AsyncConsumer:
    keys = {**KEYS, "bootstrap_servers": cluster.bootstrap_servers, **settings}
    return AsyncConsumer("t", interceptors=interceptors, **keys)


async def read(consumer: AsyncConsumer, count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while len(found) < count:
        found += [(record.partition, record.offset) for record in await consumer.poll(1.0)]
    return found


@pytest.mark.spec("S3-15", "S4-04", "B.3.2")
@pytest.mark.parametrize("kind", [Seen, SeenAsync])
def test_what_polls_return_and_commits_store_is_seen_plain_or_by_coroutines(kind: Any) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        interceptor = kind()
        seen = getattr(interceptor, "seen", interceptor)
        async with consumer_of(cluster, interceptor, client_id="me") as consumer:
            polled = []
            while sum(map(len, polled)) < 5:
                polled.append([record.offset for record in await consumer.poll(0.2, max_records=2)])
            # Nothing of polls that waited in vain.
            assert seen.consumed == [offsets for offsets in polled if offsets]
            assert seen.committed == []
            await consumer.commit()
            assert seen.committed == [{T0: OffsetAndMetadata(3, 0), T1: OffsetAndMetadata(2, 0)}]
            consumer.commit_async({T0: OffsetAndMetadata(1)})
            while len(seen.committed) < 2:
                await consumer.poll(0.05)
            assert seen.committed[1] == {T0: OffsetAndMetadata(1)}
            await consumer.commit({})
            assert len(seen.committed) == 2
            assert seen.closed == 0
        assert seen.closed == 1
        assert seen.settings.get("client.id", "me") == "me"

    with_cluster(scenario)


@pytest.mark.spec("S3-15")
def test_iteration_is_seen_before_the_first_record_comes_out() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        seen = Seen()
        async with consumer_of(cluster, seen) as consumer:
            async for _ in consumer:
                assert sum(map(len, seen.consumed)) > 0
                break

    with_cluster(scenario)


@pytest.mark.spec("S3-15", "B.14.1")
def test_automatic_commits_are_seen_too_and_that_of_close() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        seen = Seen()
        settings: dict[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": 20}
        async with consumer_of(cluster, seen, **settings) as consumer:
            await read(consumer, 5)
            while not seen.committed:
                await consumer.poll(0.02)
            assert seen.committed[-1][T0].offset <= 3
            cluster.produce("t", [b"v"], partition=0)
            await read(consumer, 1)
        assert seen.committed[-1][T0].offset == 4
        assert cluster.committed("g")[T0] == 4
        assert len(seen.committed) >= 2

    with_cluster(scenario)


@pytest.mark.spec("S3-15")
def test_a_commit_that_fails_is_not_seen() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        seen = Seen()
        async with consumer_of(cluster, seen) as consumer:
            await read(consumer, 5)
            cluster.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
            with pytest.raises(Exception, match="AUTHORIZATION"):
                await consumer.commit()
            await consumer.poll(0)
            assert seen.committed == []

    with_cluster(scenario)


@pytest.mark.spec("S3-14", "S3-15", "U-28")
def test_one_that_raises_costs_a_line_in_the_log_and_no_record(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        before, after = Seen(), Seen()
        async with consumer_of(cluster, before, Raises(), after) as consumer:
            found = []
            while len(found) < 5:
                found += [
                    (record.partition, record.offset) for record in await consumer.poll(1.0, max_records=1)
                ]
            assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
            await consumer.commit()
            assert before.consumed == after.consumed
            assert len(after.consumed) == 5
            assert after.committed == before.committed
            assert len(after.committed) == 1
        assert after.closed == 1

    caplog.set_level(logging.INFO, "kclient.interceptors")
    with_cluster(scenario)
    lines = [record.message for record in caplog.records if record.name == "kclient.interceptors"]
    # Five failures of on_consume, one line.
    assert [line.split(" raised")[0] for line in lines] == [
        f"the interceptor's Raises.{method}" for method in ("on_consume", "on_commit", "close")
    ]


@pytest.mark.spec("S3-14", "S3-15")
def test_records_may_be_left_out_but_not_made_up(caplog: pytest.LogCaptureFixture) -> None:
    older: list[Records[Any, Any]] = []

    class Repeats:
        """Gives back the first batch that it ever saw, then nonsense."""

        def on_consume(self, records: Records[Any, Any]) -> Any:
            if len(records):
                older.append(records)
            return older[0] if len(older) < 3 else list(records)

    async def scenario(cluster: EmbeddedCluster) -> None:
        last = Seen()
        async with consumer_of(cluster, FirstPartition(), Repeats(), last) as consumer:
            found: list[tuple[int, int]] = []
            while len(found) < 3:
                found += [
                    (record.partition, record.offset) for record in await consumer.poll(1.0, max_records=1)
                ]
            assert found == [(0, 0), (0, 1), (0, 2)]
            while await consumer.position(T1) < 2:
                assert len(await consumer.poll(0.1)) == 0  # left out for the application as well
            await consumer.commit()
            assert last.committed == [{T0: OffsetAndMetadata(3, 0), T1: OffsetAndMetadata(2, 0)}]

    with_cluster(scenario)
    assert "Repeats.on_consume returned" in caplog.text


@pytest.mark.spec("S3-15")
def test_a_result_that_cannot_even_be_shown_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Unshowable:
        def __repr__(self) -> str:
            raise RuntimeError("the whole of a secret")

    class Gives:
        def on_consume(self, records: Records[Any, Any]) -> Any:
            return Unshowable()

    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, Gives()) as consumer:
            found = 0
            while found < 3:
                found += len(await consumer.poll(1.0))

    with_cluster(scenario)
    assert "Gives.on_consume returned an object of type Unshowable" in caplog.text


@pytest.mark.spec("S3-14")
def test_a_poll_that_is_cancelled_inside_an_interceptor_loses_nothing() -> None:
    class Blocks:
        """Waits for ever, the first time."""

        def __init__(self) -> None:
            self.waits = asyncio.Event()
            self.times = 0

        async def on_consume(self, records: Records[Any, Any]) -> None:
            self.times += 1
            if self.times == 1:
                self.waits.set()
                await asyncio.Event().wait()

    async def scenario(cluster: EmbeddedCluster) -> None:
        interceptor = Blocks()
        async with consumer_of(cluster, interceptor) as consumer:
            poll = asyncio.create_task(read(consumer, 5))
            await interceptor.waits.wait()
            poll.cancel()
            with pytest.raises(asyncio.CancelledError):
                await poll
            assert sorted(await read(consumer, 5)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]

    with_cluster(scenario)


@pytest.mark.spec("I-24")
def test_one_that_never_closes_does_not_keep_close_waiting() -> None:
    class Stays:
        """Its close waits for ever."""

        def on_consume(self, records: Records[Any, Any]) -> None:
            return None

        async def close(self) -> None:
            await asyncio.Event().wait()

    async def scenario(cluster: EmbeddedCluster) -> None:
        consumer = consumer_of(cluster, Stays())
        await read(consumer, 5)
        async with asyncio.timeout(5):
            await consumer.close(timeout=0.3)

    with_cluster(scenario)


@pytest.mark.spec("S3-15", "B.3.9")
def test_a_consumers_interceptors_run_on_its_own_thread() -> None:
    seen = Seen()
    with EmbeddedCluster(
        brokers=1, topics={"t": 2}, config={"group.initial.rebalance.delay.ms": 0}
    ) as cluster:
        cluster.produce("t", [b"v"] * 3, partition=0)
        keys = {**KEYS, "bootstrap_servers": cluster.bootstrap_servers, "enable_auto_commit": True}
        with Consumer("t", interceptors=[seen], auto_commit_interval_ms=10, **keys) as consumer:
            records = iter(consumer)
            assert [next(records).offset for _ in range(3)] == [0, 1, 2]
            while not seen.committed:
                consumer.poll(0.02)
    assert seen.threads == {threading.current_thread().name}
    assert seen.closed == 1


@pytest.mark.spec("S3-14", "S3-15")
def test_ctrl_c_inside_an_interceptor_loses_nothing() -> None:
    class Interrupted:
        """Ctrl-C comes in the middle of its first call."""

        times = 0

        def on_consume(self, records: Records[Any, Any]) -> None:
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt

    with EmbeddedCluster(
        brokers=1, topics={"t": 2}, config={"group.initial.rebalance.delay.ms": 0}
    ) as cluster:
        cluster.produce("t", [b"v"] * 3, partition=0)
        keys = {**KEYS, "bootstrap_servers": cluster.bootstrap_servers}
        with Consumer("t", interceptors=[Interrupted()], **keys) as consumer:
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(10.0)
            assert [record.offset for record in consumer.poll(5.0)] == [0, 1, 2]


@pytest.mark.spec("B.1")
def test_interceptors_are_objects_classes_or_names_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_interceptors.py").write_text(
        "class Mine:\n    def on_commit(self, offsets): ...\n\nVALUE = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=localhost:1\ninterceptor.classes=my_interceptors.Mine\nclient.id=me\n")
    consumer = AsyncConsumer(properties=file)
    assert [type(one).__name__ for one in consumer._core.config.interceptors] == ["Mine"]
    consumer = AsyncConsumer(bootstrap_servers="localhost:1", client_id="me", interceptors=Seen)
    (made,) = consumer._core.config.interceptors
    assert made.settings["client.id"] == "me"
    for wrong, why in (
        ("my_interceptors.Yours", "cannot be imported"),
        ("com.acme.Audit", "No module named 'com'"),
        ("my_interceptors.VALUE", "and no class"),
        ([object()], "does not have any of on_consume, on_commit"),
    ):
        with pytest.raises(ConfigError, match=why):
            AsyncConsumer(bootstrap_servers="localhost:1", interceptors=wrong)
    with pytest.raises(ConfigError, match="does not have all of metric_added"):
        AsyncConsumer(bootstrap_servers="localhost:1", metric_reporters=[Seen()])


@pytest.mark.spec("B.1")
def test_a_consumer_refuses_coroutines_that_it_cannot_await() -> None:
    with pytest.raises(ConfigError, match=r"The interceptors' SeenAsync.on_consume and SeenAsync.on_commit"):
        Consumer(bootstrap_servers="localhost:1", interceptors=[SeenAsync()])


class Plugin(Seen):
    """Can be an interceptor, a metric reporter and a deserializer; notes in `order` what happens to it."""

    order: list[str]  # of the test's own subclass

    def configure(self, settings: dict[str, Any], is_key: bool = False) -> None:
        self.order.append(f"configure {type(self).__name__}")

    def metric_added(self, *metric: Any) -> None: ...

    def metric_removed(self, *metric: Any) -> None: ...

    def deserialize(self, topic: str, headers: Any, data: bytes) -> bytes:
        return data

    def close(self) -> None:
        self.order.append(f"close {type(self).__name__}")


@pytest.mark.spec("S3-15", "B.1.1")
@pytest.mark.parametrize("face", [Consumer, AsyncConsumer])
def test_if_one_of_several_plugins_cannot_be_configured_those_before_are_closed(face: Any) -> None:
    order: list[str] = []

    class First(Plugin): ...

    class Second(Plugin):
        def configure(self, settings: dict[str, Any], is_key: bool = False) -> None:
            super().configure(settings)
            raise LookupError("no such audit log")

    class Never(Plugin): ...

    Plugin.order = order
    keys = {"bootstrap_servers": "localhost:1", "group_id": "g"}
    with pytest.raises(LookupError):
        face(**keys, interceptors=[First, Second, Never])
    assert order == ["configure First", "configure Second", "close Second", "close First"]
    order.clear()
    with pytest.raises(LookupError):
        face(**keys, value_deserializer=First(), interceptors=[Never], metric_reporters=[Second()])
    assert sorted(order[3:]) == ["close First", "close Never", "close Second"]


@pytest.mark.spec("S3-15")
def test_if_the_consumer_cannot_be_made_for_another_reason_its_plugins_are_closed() -> None:
    order: list[str] = []

    class One(Plugin): ...

    class Failing(Plugin):
        def close(self) -> None:
            super().close()
            raise LookupError

    class Coroutines(One):
        async def on_commit(self, offsets: Any) -> None: ...

    Plugin.order = order
    keys: dict[str, Any] = {"bootstrap_servers": "localhost:1", "interceptors": [Failing, One]}
    for face in (Consumer, AsyncConsumer):
        with pytest.raises(ConfigError, match="needs group_id"):
            face("t", value_deserializer=One(), **keys)
        assert order[3:] == ["close Failing", "close One", "close One"]
        order.clear()
    with pytest.raises(ConfigError, match="coroutine functions"):
        Consumer(**{**keys, "interceptors": [Coroutines]})
    assert order == ["configure Coroutines", "close Coroutines"]
