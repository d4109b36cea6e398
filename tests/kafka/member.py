"""One member of a group in a process of its own: it reads until SIGTERM, then closes cleanly.

    python -m tests.kafka.member KIND SETTINGS TOPIC

KIND is `sync` (kclient.Consumer), `async` (kclient.AsyncConsumer) or `confluent`, SETTINGS a JSON object in Kafka's
dotted names. It writes its events as JSON lines, each one before it asks for the next record.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Iterable
from typing import Any

POLL_SECONDS = 0.2
stopping = False


def stop(*_: object) -> None:
    """The handler of SIGTERM."""
    global stopping  # noqa: PLW0603 – a signal handler has no other place
    stopping = True


def tell(event: str, **details: Any) -> None:
    """One line to the process that started this one."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def tell_partitions(event: str, partitions: Iterable[Any]) -> None:
    """An assignment or a revocation, of any client's partitions."""
    tell(event, partitions=[tp.partition for tp in partitions])


class Listener:
    """Writes an event for every call of the listener's three methods."""

    def on_partitions_assigned(self, partitions: Iterable[Any]) -> None:
        tell_partitions("assigned", partitions)

    def on_partitions_revoked(self, partitions: Iterable[Any]) -> None:
        tell_partitions("revoked", partitions)

    def on_partitions_lost(self, partitions: Iterable[Any]) -> None:
        tell_partitions("lost", partitions)


def tell_records(records: Iterable[Any]) -> None:
    """The numbers that records of kclient hold."""
    if numbers := [int(record.value) for record in records]:
        tell("records", numbers=numbers)


def run_sync(settings: dict[str, Any], topic: str) -> None:
    """kclient.Consumer."""
    from kclient import Consumer

    with Consumer(topic, config=settings, listener=Listener()) as consumer:
        while not stopping:
            tell_records(consumer.poll(POLL_SECONDS))


async def run_async(settings: dict[str, Any], topic: str) -> None:
    """kclient.AsyncConsumer."""
    from kclient import AsyncConsumer

    async with AsyncConsumer(topic, config=settings, listener=Listener()) as consumer:
        while not stopping:
            tell_records(await consumer.poll(POLL_SECONDS))


def run_confluent(settings: dict[str, Any], topic: str) -> None:
    """confluent_kafka.Consumer, librdkafka underneath."""
    from confluent_kafka import Consumer

    consumer = Consumer(settings)
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: tell_partitions("assigned", partitions),
        on_revoke=lambda _, partitions: tell_partitions("revoked", partitions),
        on_lost=lambda _, partitions: tell_partitions("lost", partitions),
    )
    while not stopping:
        message = consumer.poll(POLL_SECONDS)
        if message is not None and message.error() is None:
            tell("records", numbers=[int(message.value())])
    consumer.close()


def main(kind: str, settings: str, topic: str) -> None:
    """Be a member of the kind until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    signal.signal(signal.SIGTERM, stop)
    if kind == "sync":
        run_sync(json.loads(settings), topic)
    elif kind == "async":
        asyncio.run(run_async(json.loads(settings), topic))
    else:
        run_confluent(json.loads(settings), topic)
    tell("closed")


if __name__ == "__main__":
    main(*sys.argv[1:])
