"""Calls of the user's handler: coroutine functions on the loop, plain functions on threads of a run's own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from kclient.errors import UsageError
from kclient.handlers.in_flight import InFlightRecord


class HandlerCaller:
    """Calls functions for records. `awaits`: whether they may be coroutine functions; `exits` gets a SystemExit."""

    def __init__(self, concurrency: int, exits: Callable[[BaseException], None], *, awaits: bool) -> None:
        self._concurrency = concurrency
        self._exits = exits
        self._awaits = awaits
        self._threads: ThreadPoolExecutor | None = None
        self.returns_coroutines: bool = False
        """Whether a function has returned a coroutine to a Consumer, which cannot await it: no record is at fault."""

    async def call(
        self, record: InFlightRecord, function: Callable[..., Any], *args: Any
    ) -> Exception | None:
        """Call a coroutine function on the loop, a plain function on a thread. Return what it raised."""
        task = asyncio.current_task()
        cancels = 0 if task is None else task.cancelling()
        try:
            if is_coroutine_function(function):
                await function(*args)
            else:
                await self._call_on_thread(record, function, *args)
        except asyncio.CancelledError:
            if task is not None and task.cancelling() > cancels:
                raise
            return RuntimeError("the handler was cancelled by its own code")
        except (SystemExit, KeyboardInterrupt) as exc:
            # Out of a task it would end the loop, which may be that of other consumers: run() raises it instead.
            self._exits(exc)
            return RuntimeError("the handler exits")
        except Exception as exc:  # noqa: BLE001 – whatever a handler raises
            return exc
        return None

    async def _call_on_thread(self, record: InFlightRecord, function: Callable[..., Any], *args: Any) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="kclient handler")
        record.in_thread = True
        try:
            call = copy_context().run
            result = await asyncio.get_running_loop().run_in_executor(
                self._threads, call, _as_in_coroutine, function, *args
            )
        finally:
            record.in_thread = False
        if inspect.isawaitable(result):
            await self._await(result)

    async def _await(self, result: Awaitable[Any]) -> None:
        if not self._awaits:
            close = getattr(result, "close", None)
            if close is not None:
                close()
            self.returns_coroutines = True
            raise UsageError(
                "The handler returned a coroutine, and a Consumer calls plain functions. Write def, or use an "
                "AsyncConsumer and run_async()."
            )
        await result

    def close(self) -> None:
        """Give up the threads. One that runs a handler ends with it."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Return whether calling it makes a coroutine; an object with an async `__call__` counts."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 – the method itself is looked at
    )


def _as_in_coroutine(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and raise StopIteration as a coroutine does (PEP 479): a future of asyncio cannot hold it."""
    try:
        return function(*args)
    except StopIteration as exc:
        raise RuntimeError("the handler raised StopIteration") from exc
