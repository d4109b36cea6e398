"""Interceptors: the user's objects that see what a poll returns and what was committed.

    on_consume(records)    before a poll, or a poll for iteration, returns; its result goes to the next one. None, or
                           nothing returned, leaves the records as they are
    on_commit(offsets)     after offsets were stored, by whatever commit, inside the user's next or present call
    close()                when the consumer is closed

An error of an interceptor is logged, and the chain continues with the last good value, so that no record is lost. They
run where the application's own code runs, not where heartbeats do. An interceptor may drop records, which then count as
consumed; it must not add any.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from kclient.consumer.callbacks import CallUser
from kclient.log import ThrottledLogger, get_logger
from kclient.records.records import Records
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.interceptors")

METHODS: Final = ("on_consume", "on_commit", "close")


class ConsumerInterceptor(Protocol):
    """Inherit from it and write the methods you need; with an AsyncConsumer they may be coroutine functions."""

    def on_consume(self, records: Records[Any, Any]) -> Records[Any, Any] | Awaitable[Any] | None:
        """See, or thin out, what the poll is about to return. It may hold no records where only positions moved."""
        return None

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Awaitable[None] | None:
        """These offsets are stored."""
        return None

    def close(self) -> Awaitable[None] | None:
        """The consumer is closed."""
        return None


class Interceptors:
    """The interceptors of one consumer, in their order."""

    def __init__(self, chain: Iterable[Any], call_user: CallUser, now: Callable[[], float]) -> None:
        self._chain = tuple(chain)
        self._call_user = call_user
        self._now = now
        self._throttled = ThrottledLogger(log)

    def __len__(self) -> int:
        return len(self._chain)

    async def on_consume(self, records: Records[Any, Any]) -> Records[Any, Any]:
        """What the chain makes of the records."""
        for number in range(len(self._chain)):
            result = await self._run(number, "on_consume", records)
            if isinstance(result, Records) and _is_part_of(result, records):
                records = result
            elif result is not None:
                self._failed(
                    number, "on_consume", None, f"returned {_kind_of(result)}, no part of what it was given"
                )
        return records

    async def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call on_commit of each interceptor with the committed offsets."""
        for number in range(len(self._chain)):
            await self._run(number, "on_commit", dict(offsets))

    async def close(self) -> None:
        """Close every interceptor."""
        for number in range(len(self._chain)):
            await self._run(number, "close")

    async def _run(self, number: int, method: str, *arguments: Any) -> Any:
        function = getattr(self._chain[number], method, None)
        if function is None:
            return None
        try:
            return await self._call_user(function, *arguments)
        except Exception as exc:  # noqa: BLE001 – logged, and of no other consequence
            self._failed(number, method, exc, f"raised {type(exc).__name__}")
            return None

    def _failed(self, number: int, method: str, error: Exception | None, what: str) -> None:
        """Log a failure, throttled for repetitions."""
        name = f"{type(self._chain[number]).__name__}.{method}"
        text = "the interceptor's %s %s; the records go on without it"
        self._throttled.warning((number, method), self._now(), text, name, what, exc_info=error)


def _kind_of(result: object) -> str:
    """What came back, without its content: that may be long, secret, or fail to show itself."""
    return f"an object of type {type(result).__name__}"


def _is_part_of(result: Records[Any, Any], given: Records[Any, Any]) -> bool:
    """Whether every run of records comes from what was given: the same partition, and within its offsets."""
    if result is given:
        return True
    bounds: dict[TopicPartition, tuple[int, int]] = {}
    for chunk in given.chunks:
        for run in chunk.runs if len(chunk) else ():
            first, last = bounds.get(chunk.partition, (run.offsets[0], run.offsets[-1]))
            bounds[chunk.partition] = min(first, run.offsets[0]), max(last, run.offsets[-1])
    return all(
        chunk.partition in bounds
        and bounds[chunk.partition][0] <= run.offsets[0]
        and run.offsets[-1] <= bounds[chunk.partition][1]
        for chunk in result.chunks
        for run in chunk.runs
        if len(run)
    )


def coroutine_methods(chain: Iterable[Any]) -> list[str]:
    """Return the names of the methods that are coroutine functions."""
    return [
        f"{type(item).__name__}.{name}"
        for item in chain
        for name in METHODS
        if inspect.iscoroutinefunction(getattr(item, name, None))
    ]
