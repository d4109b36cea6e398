"""Rebalances as a listener sees them: when each method is called, with which partitions, and what it may do."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from kclient import AsyncConsumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError, CommitFailedError, ListenerError, WakeupError
from tests.consumer.mini_broker import FAST, MiniBroker
from tests.consumer.support import A0, consumer, with_broker
from tests.waiting import until

REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID = 27, 25


class Journal(RebalanceListener):
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[TopicPartition, ...]]] = []

    async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("assigned", partitions))

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("revoked", partitions))

    async def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("lost", partitions))


async def polled_until(c: Any, condition: Any) -> list[Any]:
    """Poll until something holds; the records on the way."""
    records: list[Any] = []
    async with asyncio.timeout(10):
        while not condition():
            records += await c.poll(0.05)
    return records


@pytest.mark.spec("S3-32", "S3-43", "S3-49")
def test_the_first_join_reports_the_assignment_alone_and_close_of_the_revocation() -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5)
            assert journal.calls == [("assigned", (A0,))]
        assert journal.calls == [("assigned", (A0,)), ("revoked", (A0,))]
        names = [seen.name for seen in broker.requests]
        assert names.index("LeaveGroupRequest") == len(names) - 1

    with_broker(scenario)


@pytest.mark.spec("S3-30", "S3-32", "S3-34")
def test_a_rebalance_commits_then_revokes_then_assigns_and_the_records_continue() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Committing(Journal):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                seen.append((c.assignment(), await c.position(A0), broker.committed[A0].offset))
                await c.commit()
                await super().on_partitions_revoked(partitions)

        seen: list[Any] = []
        journal = Committing()
        async with consumer(broker, "a", listener=journal) as c:
            first = await c.poll(5, max_records=2)
            broker.heartbeat_errors = [REBALANCE_IN_PROGRESS]
            rest = await polled_until_joined(c, broker)
            assert [record.offset for record in [*first, *rest]] == [0, 1, 2, 3, 4]
            assert journal.calls == [("assigned", (A0,)), ("revoked", (A0,)), ("assigned", (A0,))]
            assert seen == [((A0,), 2, 2)]

    async def polled_until_joined(c: Any, broker: MiniBroker) -> list[Any]:
        await asyncio.sleep(0.1)  # the heartbeat's response comes before the next poll
        assert c.assignment() == (A0,)
        records = list(await c.poll(0))
        while len(records) < 3:
            records += await c.poll(0.05)
        return records

    with_broker(scenario)


@pytest.mark.spec("S3-34")
@pytest.mark.parametrize(
    ("method", "code"),
    [("on_partitions_revoked", REBALANCE_IN_PROGRESS), ("on_partitions_lost", UNKNOWN_MEMBER_ID)],
)
def test_partitions_are_assigned_until_the_listener_returns_or_raises_and_no_longer(
    method: str, code: int
) -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal, owned = Journal(), list[tuple[TopicPartition, ...]]()

        async def failing(partitions: tuple[TopicPartition, ...]) -> None:
            owned.append(c.assignment())
            raise LookupError("no such thing")

        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5)
            setattr(journal, method, failing)
            broker.heartbeat_errors = [code]
            with pytest.raises(ListenerError):
                await polled_until(c, lambda: False)
            delattr(journal, method)
            await polled_until(c, lambda: len(journal.calls) == 2)
            assert owned == [(A0,)]
            assert journal.calls[1] == ("assigned", (A0,))  # it was given up, and comes again

    with_broker(scenario)


@pytest.mark.spec("S3-31", "S3-53")
def test_a_member_that_the_coordinator_forgot_loses_its_partitions() -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5, max_records=2)
            broker.heartbeat_errors = [UNKNOWN_MEMBER_ID]
            await polled_until(c, lambda: len(journal.calls) >= 3)
            assert journal.calls == [("assigned", (A0,)), ("lost", (A0,)), ("assigned", (A0,))]

    with_broker(scenario)


@pytest.mark.spec("S1-17")
def test_commit_callbacks_run_before_on_partitions_lost() -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        async with consumer(broker, "a", listener=journal, enable_auto_commit=False) as c:
            await c.poll(5)
            c.commit_async(callback=lambda offsets, error: journal.calls.append(("callback", ())))
            await until(lambda: broker.committed)
            broker.heartbeat_errors = [UNKNOWN_MEMBER_ID]
            await until(lambda: c.group_metadata().member_id == "")
            await asyncio.sleep(0.1)  # both wait for the next poll now
            await polled_until(c, lambda: len(journal.calls) == 4)
            assert [what for what, _ in journal.calls] == ["assigned", "callback", "lost", "assigned"]

    with_broker(scenario)


@pytest.mark.spec("S3-36")
@pytest.mark.parametrize("method", ["on_partitions_revoked", "on_partitions_assigned"])
def test_what_a_listener_raises_comes_out_of_poll_once_and_the_rebalance_continues(method: str) -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()

        async def broken(partitions: tuple[TopicPartition, ...]) -> None:
            journal.calls.append((f"broken {method}", partitions))
            raise LookupError("no such thing")

        async with consumer(broker, "a") as c:
            await c.poll(5)
            await c.subscribe(["a"], listener=journal)
            setattr(journal, method, broken)
            broker.heartbeat_errors = [REBALANCE_IN_PROGRESS]
            with pytest.raises(ListenerError) as caught:
                await polled_until(c, lambda: False)
            assert (caught.value.callback, caught.value.partitions) == (method, (A0,))
            assert isinstance(caught.value.__cause__, LookupError)
            broker.fill("a", 0, b"5")
            records = await polled_until(c, lambda: broker.generation == 2 and c.assignment())
            while not records:
                records += await c.poll(1)
            assert [record.offset for record in records] == [5]
            assert sum(name.startswith("broken") for name, _ in journal.calls) == 1
            delattr(journal, method)

    with_broker(scenario)


@pytest.mark.spec("S3-36")
def test_a_wakeup_in_on_partitions_revoked_ends_the_poll_as_it_is_and_the_rebalance_continues() -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()

        async def looks(partitions: tuple[TopicPartition, ...]) -> None:
            c.wakeup()
            await c.committed([A0])

        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5)
            journal.on_partitions_revoked = looks  # type: ignore[method-assign]
            broker.heartbeat_errors = [REBALANCE_IN_PROGRESS]
            with pytest.raises(WakeupError):
                await polled_until(c, lambda: False)
            del journal.on_partitions_revoked
            await polled_until(c, lambda: broker.generation == 2 and c.assignment())
            assert journal.calls == [("assigned", (A0,)), ("assigned", (A0,))]

    with_broker(scenario)


@pytest.mark.spec("S3-50")
def test_an_error_of_ours_inside_of_on_partitions_assigned_comes_out_as_it_is() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Failing(Journal):
            async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
                raise CommitFailedError("as it is", reason="evicted")

        async with consumer(broker, "a", listener=Failing()) as c:
            with pytest.raises(CommitFailedError, match="as it is"):
                await c.poll(5)

    with_broker(scenario)


def test_without_on_partitions_lost_the_revoked_method_is_called() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Short:
            revoked: tuple[TopicPartition, ...] = ()

            def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                Short.revoked = partitions

        async with consumer(broker, "a", listener=Short()) as c:
            await c.poll(5)
            broker.heartbeat_errors = [UNKNOWN_MEMBER_ID]
            await polled_until(c, lambda: Short.revoked)
            assert Short.revoked == (A0,)

    with_broker(scenario)


def test_a_listener_that_raises_in_close_is_notified_at_the_end_and_the_member_has_left() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Broken(Journal):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                raise LookupError

        c = consumer(broker, "a", listener=Broken())
        await c.poll(5)
        with pytest.raises(ListenerError):
            await c.close()
        assert len(broker.of("LeaveGroupRequest")) == 1

    with_broker(scenario)


def test_unsubscribe_revokes_leaves_and_commits_nothing() -> None:
    """B.18."""

    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5)
            await c.unsubscribe()
            assert (c.assignment(), c.subscription()) == ((), ())
            assert journal.calls[-1] == ("revoked", (A0,))
            assert broker.commits == []
            assert len(broker.of("LeaveGroupRequest")) == 1
            await c.subscribe(["a"])
            assert len(await c.poll(5)) == 5

    with_broker(scenario)


@pytest.mark.spec("S3-42")
def test_an_assignment_of_a_topic_that_was_not_requested_is_not_taken() -> None:
    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        async with consumer(broker, "a", listener=journal) as c:
            await c.poll(5)
            generation = broker.generation
            right = broker.default_responses["SyncGroupRequest"]

            def foreign(request: Any) -> Any:
                response = right(request)
                response.assignment = response.assignment.replace(b"\x01a", b"\x01z")
                broker.default_responses["SyncGroupRequest"] = right
                return response

            broker.default_responses["SyncGroupRequest"] = foreign
            broker.heartbeat_errors = [REBALANCE_IN_PROGRESS]
            await polled_until(c, lambda: broker.generation == generation + 2 and c.assignment())
            assert [name for name, _ in journal.calls] == ["assigned", "revoked", "revoked", "assigned"]

    with_broker(scenario)


def test_an_object_without_any_of_the_methods_is_no_listener() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            with pytest.raises(ArgumentError, match="RebalanceListener"):
                await c.subscribe(["a"], listener=object())  # type: ignore[arg-type]

    with_broker(scenario)


@pytest.mark.spec("S3-54", "U-28")
def test_with_hundreds_of_partitions_a_rebalance_is_reported_in_short_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first few by name; the rest is a number, also in what a listener's error says."""

    class Failing(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            raise LookupError

    async def main() -> None:
        topics = {f"orders-{number:03}": 1 for number in range(300)}
        async with EmbeddedCluster(topics=topics, config={"group.initial.rebalance.delay.ms": 0}) as kafka:
            keys = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "g", "metadata_max_age_ms": 500}
            async with AsyncConsumer(**{**FAST, **keys}) as c:
                await c.subscribe(pattern=re.compile("orders.*"), listener=Failing())
                with pytest.raises(ListenerError) as caught:
                    await polled_until(c, lambda: False)
                assert (len(caught.value.partitions), len(c.assignment())) == (300, 300)
                assert "orders-000-0, orders-001-0, " in str(caught.value)
                assert len(str(caught.value)) < 1000
                kafka.create_topic("orders-new")
                with pytest.raises(ListenerError):
                    await polled_until(c, lambda: False)
                assert len(c.assignment()) == 301

    with caplog.at_level(logging.INFO, "kclient"):
        asyncio.run(asyncio.wait_for(main(), 30))
    lines = [record.getMessage() for record in caplog.records]
    assert any("since the last join: 1 (orders-new) came, none went" in line for line in lines)
    assert [line for line in lines if len(line) > 1000] == []
