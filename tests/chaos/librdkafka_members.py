"""The members of confluent-kafka, librdkafka underneath: the same application."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.chaos.member_journal import MemberJournal
from tests.chaos.member_settings import POLL_SECONDS, Order

BATCH = 200


class TheirMember:
    """It always commits synchronously: when a coordinator moves, librdkafka sends asynchronous commits in any order."""

    def __init__(self, order: Order, diary: MemberJournal) -> None:
        self._order = order
        self.diary = diary

    def run(self) -> None:
        order, diary = self._order, self.diary
        self.consumer = Consumer(
            {**order.settings_of(diary.name), "enable.auto.commit": False, "log_level": 3}
        )
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self.consumer.subscribe([order.topic], **callbacks)
        while not order.stopping:
            with diary.inside("poll"):
                messages = [m for m in self.consumer.consume(BATCH, POLL_SECONDS) if m.error() is None]
            diary.delivered([(m.partition(), m.offset(), m.value().decode()) for m in messages])
            with diary.inside("commit"):
                self._commit()
        diary.tell("closing")
        with diary.inside("close"):
            self.consumer.close()
        diary.tell("closed")

    def _commit(self) -> None:
        if wanted := self.diary.to_commit():
            number = self.diary.commit(wanted)
            try:
                response = self.consumer.commit(offsets=self._offsets(wanted), asynchronous=False)
            except KafkaException as exc:
                self.diary.committed(number, exc)
            else:
                errors = [tp.error for tp in response or [] if tp.error is not None]
                self.diary.committed(number, errors or None)

    def _offsets(self, wanted: dict[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self._order.topic, number, at) for number, at in wanted.items()]

    def _on_assign(self, _: Any, partitions: list[Any]) -> None:
        with self.diary.callback("assigned", numbers(partitions)):
            pass

    def _on_revoke(self, _: Any, partitions: list[Any]) -> None:
        with self.diary.callback("revoked", numbers(partitions)):
            self._commit()

    def _on_lost(self, _: Any, partitions: list[Any]) -> None:
        with self.diary.callback("lost", numbers(partitions)):
            pass


def numbers(partitions: list[Any]) -> list[int]:
    return [tp.partition for tp in partitions]
