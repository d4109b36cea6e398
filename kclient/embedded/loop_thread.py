"""The event loop of a cluster: the caller's running loop, or a loop on a thread of its own for callers without one.

A method that is marked with `control` may be called from the cluster's loop, where it runs at once, and from any other
thread, where it runs on the loop and the caller waits. A coroutine method returns a task on the loop, and its result
elsewhere. Arguments are checked before the method runs, so that a test that kills broker "2" gets an ArgumentError
instead of a half-finished change. Only plain types (text, numbers, None) are checked; the methods check all others.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast

from kclient.errors import ArgumentError, DeadlineError, UsageError

KINDS: Final[dict[str, tuple[type, str]]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "None": (type(None), "None"),
}


def check(method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise ArgumentError for an argument that is none of the plain types it is annotated with."""
    signature, kinds = _signature(method)
    given = signature.bind(*args, **options).arguments
    for name, words in kinds.items():
        if name in given and not any(_fits(given[name], word) for word in words):
            wanted = " or ".join(KINDS[word][1] for word in words)
            raise ArgumentError(
                f"{method.__name__}({name}={given[name]!r}): {name} is {wanted}, not "
                f"{type(given[name]).__name__}; nothing was done."
            )


@cache
def _signature(method: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[str]]]:
    """The signature, and the plain types of those parameters that have no others."""
    signature = inspect.signature(method)
    annotated = {
        parameter.name: str(parameter.annotation).split(" | ") for parameter in signature.parameters.values()
    }
    return signature, {name: words for name, words in annotated.items() if set(words) <= set(KINDS)}


def _fits(value: Any, word: str) -> bool:
    if word == "float":
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, KINDS[word][0])


Function = TypeVar("Function", bound=Callable[..., Any])

CALL_SECONDS: Final = 30.0


class ClusterLoop:
    """A running loop and the thread that it runs on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        self.loop = loop
        self._thread = thread
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop only keeps weak references

    @classmethod
    def here(cls) -> ClusterLoop:
        """The caller's own running loop. Raise UsageError where none runs."""
        try:
            return cls(asyncio.get_running_loop(), threading.current_thread())
        except RuntimeError:
            raise UsageError(
                "No event loop runs here. Use `with EmbeddedCluster() as cluster:`, which brings its own, "
                "or `async with` inside a coroutine."
            ) from None

    @classmethod
    def new(cls) -> ClusterLoop:
        """A loop on a new daemon thread."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="kclient.embedded", daemon=True)
        thread.start()
        return cls(loop, thread)

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the loop; await its result if it is a coroutine."""
        if threading.current_thread() is self._thread:
            given = function()
            return self._task(given) if asyncio.iscoroutine(given) else given
        if not self._thread.is_alive():
            raise UsageError("The cluster runs in another process, this one's parent; ask it there.")
        call = asyncio.run_coroutine_threadsafe(_awaited(function), self.loop)
        if not wait([call], CALL_SECONDS).done:
            call.cancel()
            raise DeadlineError(
                f"The embedded cluster did not come back within {CALL_SECONDS:g} s; an observer or an edit of a "
                "response runs on its loop and must not wait.",
                waiting_for="the cluster's loop",
                timeout=CALL_SECONDS,
            )
        return call.result()

    def _task(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def end(self) -> None:
        """Stop the loop of a thread of its own, when every task on it has been cancelled and has ended."""
        asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result(CALL_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CALL_SECONDS)
        self.loop.close()


class HasClusterLoop(Protocol):
    """The attribute that `control` needs of an object."""

    @property
    def cluster_loop(self) -> ClusterLoop: ...


def control(method: Function) -> Function:
    """Mark a method that must run on the cluster's loop. Arguments are checked against plain annotated types."""

    @functools.wraps(method)
    def called(self: HasClusterLoop, *args: Any, **options: Any) -> Any:
        check(method, (self, *args), options)
        return self.cluster_loop.call(functools.partial(method, self, *args, **options))

    return cast(Function, called)


async def _awaited(function: Callable[[], Any]) -> Any:
    given = function()
    return await given if isinstance(given, Coroutine) else given


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
