"""Consumer and AsyncConsumer behind the same blocking calls, so that a scenario runs with each."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from kclient import AsyncConsumer, Consumer

SECONDS = 20


class AsyncFace:
    """An AsyncConsumer whose calls block: each runs the loop until it is done, and the loop stands still between."""

    def __init__(self, *topics: str, **settings: Any) -> None:
        self._runner = asyncio.Runner()
        self._consumer = self._run(lambda: AsyncConsumer(*topics, **settings))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._consumer, name)
        return lambda *args, **options: self._run(lambda: method(*args, **options))

    def _run(self, call: Any) -> Any:
        async def inside() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return self._runner.run(inside())

    def __iter__(self) -> Iterator[Any]:
        records = self._run(lambda: aiter(self._consumer))
        while True:
            yield self._run(lambda: anext(records))

    def __enter__(self) -> Self:
        self._run(self._consumer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(lambda: self._consumer.__aexit__(kind, error, trace))
        finally:
            self._runner.close()


FACES: dict[str, Any] = {"Consumer": Consumer, "AsyncConsumer": AsyncFace}


def read(consumer: Any, count: int, seconds: float = SECONDS) -> list[Any]:
    """Poll until so many records came; more, or none in time, is the caller's to judge."""
    records: list[Any] = []
    deadline = time.monotonic() + seconds
    while len(records) < count and time.monotonic() < deadline:
        records += list(consumer.poll(0.5))
    return records


def read_nothing(consumer: Any, seconds: float = 1.0) -> None:
    """Poll for a while; every record is a failure."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert list(consumer.poll(0.1)) == []


def wait_for_assignment(consumer: Any, count: int = 1, seconds: float = SECONDS) -> None:
    """Poll without expecting records until so many partitions are assigned and have a position."""
    deadline = time.monotonic() + seconds
    while len(consumer.assignment()) < count:
        assert time.monotonic() < deadline, f"assigned: {consumer.assignment()}"
        consumer.poll(0.05)
    for partition in consumer.assignment():
        consumer.position(partition)
