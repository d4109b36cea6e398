"""async_records, the native async iterator of `async for record in consumer`, with numbers and tuples for records."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest

native = pytest.importorskip("kclient.records._native", reason="the native decoder is not built")


class Source:
    """Deliveries of records, one after another; `polls` counts the calls of the coroutine that polls."""

    def __init__(self, *deliveries: list[Any]) -> None:
        self._left = list(deliveries)
        self._now: Iterator[Any] = iter(())
        self.polls = 0
        self.arrived = asyncio.Event()
        self.arrived.set()

    def iterator(self) -> Iterator[Any]:
        return self._now

    async def poll(self) -> Any:
        self.polls += 1
        await self.arrived.wait()
        while self._left:
            self._now = iter(self._left.pop(0))
            for record in self._now:
                return record
        raise StopAsyncIteration

    def records(self) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = native.async_records(self.iterator, self.poll)
        return found


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_it_yields_every_record_of_every_delivery_and_polls_between() -> None:
    async def scenario() -> None:
        source = Source([(1,), (2,)], [], [(3, "three")], [(4,)])
        assert [record async for record in source.records()] == [(1,), (2,), (3, "three"), (4,)]
        assert source.polls == 4

    run(scenario)


def test_two_loops_share_the_records() -> None:
    async def scenario() -> None:
        source = Source([(1,), (2,), (3,), (4,)])
        first, second = source.records(), source.records()
        assert [await anext(each) for each in (first, second, first, second)] == [(1,), (2,), (3,), (4,)]

    run(scenario)


def test_an_awaitable_takes_a_record_when_it_is_awaited_and_not_before() -> None:
    async def scenario() -> None:
        records = Source([(1,), (2,)]).records()
        anext(records)  # dropped
        cancelled = asyncio.create_task(coroutine(anext(records)))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert await asyncio.create_task(coroutine(anext(records))) == (1,)
        assert await asyncio.wait_for(anext(records), 5) == (2,)

    run(scenario)


def coroutine(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    """Whatever asyncio.create_task takes."""
    assert isinstance(awaitable, Coroutine)
    return awaitable


def test_a_wait_that_is_cancelled_takes_nothing_and_cannot_go_on() -> None:
    async def scenario() -> None:
        source = Source([(1,)])
        source.arrived.clear()
        records = source.records()
        waiting = anext(records)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.01)
        with pytest.raises(RuntimeError, match="already awaited"):
            await waiting
        source.arrived.set()
        assert await anext(records) == (1,)

    run(scenario)


def test_an_error_of_the_poll_or_of_the_iterator_comes_through() -> None:
    async def refuse() -> Any:
        raise ValueError("poll")

    def broken() -> Iterator[Any]:
        yield (1,)
        raise ValueError("iterator")

    async def scenario() -> None:
        with pytest.raises(ValueError, match="poll"):
            await anext(native.async_records(lambda: iter(()), refuse))
        one = broken()
        records = native.async_records(lambda: one, refuse)
        assert await anext(records) == (1,)
        with pytest.raises(ValueError, match="iterator"):
            await anext(records)
        with pytest.raises(ZeroDivisionError):
            await anext(native.async_records(lambda: 1 // 0, refuse))
        with pytest.raises(TypeError):
            await anext(native.async_records(lambda: 5, refuse))

    run(scenario)


def test_it_can_be_driven_by_hand() -> None:
    async def never() -> Any:
        raise AssertionError

    async def waits() -> Any:
        try:
            return await Asking()
        except KeyError:
            return "thrown"

    class Asking:
        def __await__(self) -> Iterator[Any]:
            return (yield "asks")

    numbers = iter([(1,), (2,), (3,)])
    ready = native.async_records(lambda: numbers, never)
    with pytest.raises(StopIteration) as stopped:
        anext(ready).send(None)
    assert stopped.value.value == (1,)
    assert list(anext(ready).__await__()) == []  # (2,) is the value of its StopIteration
    with pytest.raises(KeyError):
        anext(ready).throw(KeyError)
    unused = anext(ready)
    unused.close()
    with pytest.raises(RuntimeError):
        unused.send(None)
    polling = native.async_records(lambda: iter(()), waits)
    for end in (lambda one: one.send("answered"), lambda one: one.throw(KeyError("k"))):
        one = anext(polling)
        assert one.send(None) == "asks"
        with pytest.raises(StopIteration) as stopped:
            end(one)
        assert stopped.value.value in ("answered", "thrown")
    one = anext(polling)
    assert one.send(None) == "asks"
    one.close()


def test_nothing_is_leaked() -> None:
    class Iterated(list[Any]):
        pass

    async def scenario() -> None:
        deliveries = [Iterated((number,) for number in range(50)) for _ in range(4)]
        watched: list[weakref.ref[Any]] = [weakref.ref(each) for each in deliveries]
        source = Source(*deliveries)
        del deliveries
        watched.append(weakref.ref(source))
        records = source.records()
        async for _ in records:
            anext(records)
        del records, source
        gc.collect()
        assert [each() for each in watched] == [None] * 5

    run(scenario)
