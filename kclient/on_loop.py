"""The AsyncConsumer inside a Consumer: it runs on the loop thread, user code runs on the waiting thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kclient.bridge import call_user
from kclient.consumer import AsyncConsumer
from kclient.consumer.async_consumer import CLOSE_SECONDS, DECODE_SLICE_SECONDS
from kclient.consumer.callbacks import RebalanceListener
from kclient.types import K_co, V_co

if TYPE_CHECKING:
    from kclient.consumer.core import ConsumerCore
    from kclient.consumer.delivered import DeliveredRecords
    from kclient.fetch.delivery import DecodeTask
    from kclient.records.records import Records

Listeners = weakref.WeakKeyDictionary["LentListener", RebalanceListener]


class LentListener:
    """A weak proxy of the user's listener, with the methods that the listener has.

    A listener often refers to its Consumer, and the loop thread refers to the ConsumerCore. So the Consumer holds the
    listener, and the core only this proxy: otherwise an unreferenced Consumer could not be garbage-collected.
    """

    def __init__(self, listeners: Listeners, listener: RebalanceListener) -> None:
        listeners[self] = listener
        self._listeners = weakref.ref(listeners)

    def __getattr__(self, name: str) -> Any:
        listeners = self._listeners()
        if listeners is None:
            raise AttributeError(name)  # the Consumer and its listener were garbage-collected
        return getattr(listeners[self], name)


class OnLoop(AsyncConsumer[K_co, V_co]):
    """AsyncConsumer for a thread that calls it through a bridge.

    The records of a poll are not `received` before the thread has them. If a signal handler raises just before that,
    the next call returns the records to the buffer, and they are delivered again.
    """

    @staticmethod
    async def _call_user(function: Callable[..., Any], *args: Any) -> Any:
        return await call_user(function, *args)

    @staticmethod
    async def _decode(task: DecodeTask) -> None:
        """Run deserializers on the waiting thread. Without deserializers decode on the loop: two thread switches would
        cost more than they gain.
        """
        if task.runs_user_code:
            await call_user(task.decode)
            return
        # The call began in this turn of the loop, after whatever else was ready: nothing has to be let run before.
        done = task.decode(DECODE_SLICE_SECONDS)
        while not done:
            await asyncio.sleep(0)
            done = task.decode(DECODE_SLICE_SECONDS)

    def _open(self) -> ConsumerCore:
        core = super()._open()
        self._return_unreceived()
        return core

    async def _close(self, timeout: float, *, clean: bool, leave: bool | None = None) -> None:
        self._return_unreceived()
        await super()._close(timeout, clean=clean, leave=leave)

    def _return_unreceived(self) -> None:
        if not self.delivered.received:
            self._core.assigned.return_all()

    async def poll(self, timeout: float = 1.0, max_records: int | None = None) -> Records[K_co, V_co]:
        records = await super().poll(timeout, max_records)
        self.delivered.received = False
        return records

    async def gather(self, rows: int, size_bytes: int, timeout: float) -> Records[K_co, V_co]:
        """Poll for a batch; its records are not received yet."""
        records = await self._gather(rows, size_bytes, timeout)
        self.delivered.received = False
        return records

    def hand_out_ahead(self) -> bool:
        """On the user's thread: hand out records that the loop has read ahead. False: a call on the loop is needed."""
        if self.closed or self._loop is None or not self.in_its_process:
            return False
        return self._core.read_ahead.hand_out(self._loop.time())

    def wakeup(self) -> None:
        self._core.read_ahead.end_validity()
        super().wakeup()

    def discard(self) -> None:
        """Close the user's objects, because the consumer cannot be created."""
        from kclient.config import discard

        discard(self._core.config)

    def coroutine_interceptors(self) -> list[str]:
        """Return the names of the interceptors' methods that are coroutine functions."""
        from kclient.consumer.interceptors import coroutine_methods

        return coroutine_methods(self._core.config.interceptors)

    @property
    def delivered(self) -> DeliveredRecords:
        """The records that were delivered to the application."""
        return self._core.assigned.delivered

    async def refill(self) -> None:
        """Poll for iteration."""
        await self._poll_for_iteration()

    async def end(self, timeout: float = CLOSE_SECONDS, *, clean: bool, leave: bool | None = None) -> None:
        """Close. `clean` says whether the delivered records were processed."""
        await self._close(timeout, clean=clean, leave=leave)

    async def end_subscription(self, *, clean: bool) -> None:
        """Unsubscribe. `clean` says whether the delivered records were processed."""
        from kclient.consumer import close

        await close.unsubscribe(self._open(), clean=clean)

    async def abandon(self) -> None:
        """Close a Consumer that was garbage-collected."""
        from kclient.consumer import close

        self.closed = True
        await close.abandon(self._core)
