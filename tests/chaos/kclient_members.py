"""The members of kclient: read, write it down, commit; the same with Consumer and with AsyncConsumer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, TopicPartition
from kclient.errors import KclientError
from tests.chaos.member_journal import MemberJournal, Row
from tests.chaos.member_settings import POLL_SECONDS, Commits, Order

COMMIT_SECONDS = 10.0


class Member:
    """A listener that commits what was read before partitions go."""

    def __init__(self, order: Order, diary: MemberJournal) -> None:
        self._order = order
        self.diary = diary
        self.consumer: Any = None

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        with self.diary.callback("assigned", numbers(partitions)):
            pass

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        with self.diary.callback("lost", numbers(partitions)):
            pass

    def offsets(self, wanted: dict[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        topic = self._order.topic
        return {TopicPartition(topic, number): OffsetAndMetadata(at) for number, at in wanted.items()}

    def commit_later(self) -> None:
        """The callback comes in one of the next calls."""
        if wanted := self.diary.to_commit():
            number = self.diary.commit(wanted)
            self.consumer.commit_async(
                self.offsets(wanted), lambda _, error: self.diary.committed(number, error)
            )

    @property
    def commits_now(self) -> bool:
        return self._order.commits is Commits.SYNC

    @property
    def commits_later(self) -> bool:
        return self._order.commits is Commits.ASYNC

    @property
    def commits_itself(self) -> bool:
        """Whether the application commits, not the client."""
        return self._order.commits is not Commits.AUTO


class SyncMember(Member):
    """kclient.Consumer, on a thread of its own."""

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        with self.diary.callback("revoked", numbers(partitions)):
            if self.commits_itself:
                self.commit()

    def commit(self) -> None:
        if wanted := self.diary.to_commit():
            number = self.diary.commit(wanted)
            try:
                self.consumer.commit(self.offsets(wanted), timeout=COMMIT_SECONDS)
            except KclientError as exc:
                self.diary.committed(number, exc)
            else:
                self.diary.committed(number, None)

    def run(self) -> None:
        order, diary = self._order, self.diary
        self.consumer = Consumer(order.topic, config=order.settings_of(diary.name), listener=self)
        while not order.stopping:
            with diary.inside("poll"):
                records = self.consumer.poll(POLL_SECONDS)
            diary.delivered(rows(records))
            if self.commits_now:
                with diary.inside("commit"):
                    self.commit()
            elif self.commits_later:
                self.commit_later()
        diary.tell("closing")
        with diary.inside("close"):
            self.consumer.close()
        diary.tell("closed")


class AsyncMember(Member):
    """kclient.AsyncConsumer, on the loop that it is run on."""

    async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        with self.diary.callback("revoked", numbers(partitions)):
            if self.commits_itself:
                await self.commit()

    async def commit(self) -> None:
        if wanted := self.diary.to_commit():
            number = self.diary.commit(wanted)
            try:
                await self.consumer.commit(self.offsets(wanted), timeout=COMMIT_SECONDS)
            except KclientError as exc:
                self.diary.committed(number, exc)
            else:
                self.diary.committed(number, None)

    async def run(self) -> None:
        order, diary = self._order, self.diary
        self.consumer = AsyncConsumer(order.topic, config=order.settings_of(diary.name), listener=self)
        while not order.stopping:
            with diary.inside("poll"):
                records = await self.consumer.poll(POLL_SECONDS)
            diary.delivered(rows(records))
            if self.commits_now:
                with diary.inside("commit"):
                    await self.commit()
            elif self.commits_later:
                self.commit_later()
        diary.tell("closing")
        with diary.inside("close"):
            await self.consumer.close()
        diary.tell("closed")


def numbers(partitions: Iterable[TopicPartition]) -> list[int]:
    return [tp.partition for tp in partitions]


def rows(records: Iterable[Any]) -> list[Row]:
    return [(record.partition, record.offset, record.value.decode()) for record in records]
