"""The consumer behind a Consumer: it lives on the loop thread; what is the user's runs on the thread that waits."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from kclient.bridge import call_user
from kclient.config import discard
from kclient.consumer import AsyncConsumer, close
from kclient.consumer.async_consumer import CLOSE_SECONDS
from kclient.consumer.core import ConsumerCore
from kclient.consumer.delivered import DeliveredRecords
from kclient.consumer.listener import RebalanceListener
from kclient.fetch.delivery import DecodeTask
from kclient.records.records import Records

Listeners = weakref.WeakKeyDictionary["LentListener", RebalanceListener]


class LentListener:
    """The user's listener as the session knows it, with the methods that it has.

    A listener often refers to its Consumer, and the loop thread to the session. So the Consumer keeps the listener, as
    long as the session keeps this: else its own listener would hold on to a Consumer that everybody has forgotten.
    """

    def __init__(self, listeners: Listeners, listener: RebalanceListener) -> None:
        listeners[self] = listener
        self._listeners = weakref.ref(listeners)

    def __getattr__(self, name: str) -> Any:
        listeners = self._listeners()
        if listeners is None:
            raise AttributeError(name)  # the Consumer is gone, and with it whom to tell
        return getattr(listeners[self], name)


class OnLoop(AsyncConsumer):
    """AsyncConsumer, as a thread uses it through a bridge.

    `received` says whether that thread has got what its last poll returned. A signal may raise in it just before: the
    records are taken back by the next call then, whatever it is, and come again.
    """

    received = True

    @staticmethod
    async def _call_user(function: Callable[..., Any], *args: Any) -> Any:
        return await call_user(function, *args)

    @staticmethod
    async def _decode(task: DecodeTask) -> None:
        """Deserializers run on the thread that waits. Without them nothing is the user's, and the way there and back
        finds cold caches.
        """
        if task.runs_user_code:
            await call_user(task.decode)
        else:
            await AsyncConsumer._decode(task)

    def _open(self) -> ConsumerCore:
        core = super()._open()
        self._return_unreceived()
        return core

    async def _close(self, timeout: float, *, clean: bool, leave: bool | None = None) -> None:
        self._return_unreceived()
        await super()._close(timeout, clean=clean, leave=leave)

    def _return_unreceived(self) -> None:
        if not self.received:
            self.received = True
            self._core.return_all()

    async def poll(self, timeout: float = 1.0, max_records: int | None = None) -> Records[Any, Any]:
        records = await super().poll(timeout, max_records)
        self.received = False
        return records

    def discard(self) -> None:
        """Close the user's objects: the consumer that they are for cannot be made."""
        discard(self._core.config)

    @property
    def interceptors(self) -> tuple[Any, ...]:
        """The user's interceptors."""
        return self._core.config.interceptors

    @property
    def delivered(self) -> DeliveredRecords:
        """What the application has in hand."""
        return self._core.delivered

    async def refill(self) -> None:
        """Poll for iteration."""
        await self._poll_for_iteration()

    async def end(self, timeout: float = CLOSE_SECONDS, *, clean: bool, leave: bool | None = None) -> None:
        """Close; the thread knows whether what is in hand was processed."""
        await self._close(timeout, clean=clean, leave=leave)

    async def end_subscription(self, *, clean: bool) -> None:
        """Unsubscribe; the thread knows whether what is in hand was processed."""
        await close.unsubscribe(self._open(), clean=clean)

    async def abandon(self) -> None:
        """End everything for a Consumer that the garbage collector found."""
        self.closed = True
        await close.abandon(self._core)
