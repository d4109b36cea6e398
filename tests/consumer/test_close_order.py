"""The tables of kclient/consumer/close.py: the steps of close() and unsubscribe(), in their order."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kclient import AsyncConsumer, RebalanceListener
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import Observer
from kclient.embedded.received_request import ReceivedRequest
from kclient.errors import ClosedError, WakeupError
from tests.scenarios.support import T0, consumer_of, play, read
from tests.waiting import until

protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])
RECORDS: Final = 3


class Journal(Observer):
    """Writes down what the cluster is asked for and what the application hears."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.begun = False

    def note(self, event: str) -> None:
        if self.begun:
            self.events.append(event)

    def requested(self, call: ReceivedRequest) -> None:
        message: Any = call.message
        if call.api == "OffsetCommit":
            (topic,) = message.topics
            self.note(f"OffsetCommit {topic.partitions[0].committed_offset}")
        elif call.api == "LeaveGroup" or getattr(message, "member_epoch", 0) < 0:
            self.note("LeaveGroup")

    # --- the application's side

    def commit_async(self, c: AsyncConsumer, name: str) -> None:
        """Commit, and note the callback; a second commit from inside of it is tried as well."""

        def callback(offsets: Any, error: Any) -> None:
            self.note(f"callback of {name}: {type(error).__name__ if error else 'stored'}")
            try:
                c.commit_async({}, lambda *_: None)
            except ClosedError:
                self.note("commit_async is refused")

        c.commit_async(callback=callback)


class Listener(RebalanceListener):
    def __init__(self, journal: Journal) -> None:
        self.journal, self.consumer = journal, None

    async def on_partitions_revoked(self, partitions: Any) -> None:
        c: Any = self.consumer
        self.journal.note("on_partitions_revoked")
        c.wakeup()
        await c.commit()
        self.journal.commit_async(c, "the listener's commit")
        self.journal.note("the listener returns")


class Interceptor:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def on_commit(self, offsets: Any) -> None:
        if offsets:
            self.journal.note("on_commit")

    def close(self) -> None:
        self.journal.note("the interceptor is closed")


class Deserializer:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def deserialize(self, topic: str, headers: Any, data: bytes) -> bytes:
        return data

    def close(self) -> None:
        self.journal.note("the deserializer is closed")


@pytest.mark.spec("B.18", "I-24")
@protocols
def test_the_order_of_a_close(protocol: str) -> None:
    journal = Journal()

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            c = await _member(cluster, protocol, journal)
            c.wakeup()
            journal.commit_async(c, "the application's commit")
            await c.close()

    play(scenario)
    assert journal.events == [
        "OffsetCommit 3",
        "OffsetCommit 3",  # the automatic one
        "on_commit",
        "callback of the application's commit: stored",
        "on_commit",
        "on_partitions_revoked",
        "OffsetCommit 3",
        "on_commit",
        "the listener returns",
        "OffsetCommit 3",
        "LeaveGroup",
        "on_commit",
        "callback of the listener's commit: stored",
        "commit_async is refused",
        "the interceptor is closed",
        "the deserializer is closed",
    ]


@pytest.mark.spec("B.18", "M-23")
@protocols
def test_the_order_of_an_unsubscribe(protocol: str) -> None:
    journal = Journal()

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            c = await _member(cluster, protocol, journal)
            journal.commit_async(c, "the application's commit")
            await until(lambda: len(c._core.callbacks) == 2)  # the interceptor's, and the application's
            await c.unsubscribe()
            assert (c.subscription(), c.assignment()) == ((), ())
            with pytest.raises(WakeupError):
                await c.committed([T0])
            journal.begun = False
            await c.close()

    play(scenario)
    assert journal.events == [
        "OffsetCommit 3",
        "on_commit",
        "callback of the application's commit: stored",
        "on_partitions_revoked",
        "OffsetCommit 3",
        "on_commit",
        "the listener returns",
        "OffsetCommit 3",
        "LeaveGroup",
        "on_commit",
        "callback of the listener's commit: stored",
    ]


async def _member(cluster: EmbeddedCluster, protocol: str, journal: Journal) -> AsyncConsumer:
    cluster.observe(journal)
    cluster.produce("t", ["a", "b", "c"][:RECORDS])
    listener = Listener(journal)
    c: Any = consumer_of(
        cluster,
        "t",
        group_id="g",
        group_protocol=protocol,
        listener=listener,
        interceptors=[Interceptor(journal)],
        value_deserializer=Deserializer(journal),
        enable_auto_commit=True,
        auto_commit_interval_ms=60_000,
    )
    listener.consumer = c
    await read(c, RECORDS)
    journal.begun = True
    return c  # type: ignore[no-any-return]
