"""How a consumer begins, whether it may be used here and now, how the user's code is run, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from kclient.change_signal import ChangeSignal
from kclient.config import Config, discard, load
from kclient.consumer import close
from kclient.consumer.callbacks import inside, is_inside
from kclient.consumer.core import ConsumerCore
from kclient.consumer.delivered import TaskProcessing
from kclient.consumer.listener import RebalanceListener, checked_listener
from kclient.consumer.poll import Poll
from kclient.consumer.subscription import checked_topics
from kclient.consumer.tasks import closed_error
from kclient.errors import ArgumentError, ConfigError, UsageError, UsedAfterForkError
from kclient.fetch.lease import Lease
from kclient.runtime import Runtime
from kclient.timeouts import checked_timeout

DECODE_SLICE_SECONDS: Final = 0.004
CLOSE_SECONDS: Final = 30.0

_abandoned: set[asyncio.Task[None]] = set()  # asyncio itself keeps no task alive


class Life:
    """What AsyncConsumer's calls stand on."""

    def __init__(
        self,
        *topics: str,
        config: Mapping[str, Any] | None = None,
        properties: str | PathLike[str] | None = None,
        listener: RebalanceListener | None = None,
        runtime: Runtime | None = None,
        **settings: Any,
    ) -> None:
        checked_topics(topics)  # a mapping of settings here explains why settings are missing
        loaded = load(settings, config, properties)
        try:
            self._set_up(loaded, topics, listener, runtime or Runtime())
        except BaseException:
            discard(loaded)
            raise

    def _set_up(
        self, config: Config, topics: tuple[str, ...], listener: RebalanceListener | None, runtime: Runtime
    ) -> None:
        self._session = ConsumerCore(config, runtime, self._call_user, self._decode)
        self._polls = Poll(self._session)
        self._processing = TaskProcessing()
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False
        self._over = ChangeSignal()
        if listener is not None and not topics:
            raise ConfigError(
                "The listener is given without topics, so it is never called. Name the topics here as well, or give "
                "the listener to subscribe().",
                problems=("a listener is given without topics",),
            )
        if topics and config.group_id is None:
            raise ConfigError(
                f"Following {', '.join(map(repr, topics))} needs group_id: a group shares out the partitions. "
                "Set group_id, or name no topics and call assign() with partitions.",
                problems=("topics are given without group_id",),
            )
        if topics:
            self._session.subscription.subscribe(topics, checked_listener(listener))

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(CLOSE_SECONDS, clean=error is None and not self._processing.interrupted())

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UsageError(
            "A consumer is neither pickled nor copied: connections and a place in a group do not leave their process. "
            "Make it inside of the function that Spark or multiprocessing runs elsewhere, and send it the settings."
        )

    def __del__(self) -> None:
        session = getattr(self, "_session", None)  # None: the constructor has raised
        if session is None or self.closed or not session.begun or not self.in_its_process:
            return
        if self._loop is not None:
            _abandon(self._loop, session)
        warn_unclosed(self)

    # --- what the sync facade does in another way; the session keeps these, and must not keep the consumer

    @staticmethod
    async def _call_user(function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of the user's."""
        result = function(*args)
        return await result if inspect.isawaitable(result) else result

    @staticmethod
    async def _decode(lease: Lease) -> None:
        """Decode in this task, and let others run at least every few milliseconds."""
        done = False
        while not done:
            await asyncio.sleep(0)  # before each slice, so that polls which never wait let others run too
            done = lease.decode(DECODE_SLICE_SECONDS)

    # --- inside

    async def _close(self, timeout: float, *, clean: bool, leave: bool | None = None) -> None:
        timeout = checked_timeout(timeout)
        if leave not in (None, True, False):
            raise ArgumentError(
                f"leave is True, False, or None for what the kind of member calls for, not {leave!r}."
            )
        self.check_process()
        if self.closed:
            return
        self._check_loop_lives()
        self._check_loop()
        if self._session.waits.closing:
            await self._see_closed(timeout)
            return
        try:
            with inside(self):
                await close.close(self._session, self._polls, timeout, clean=clean, leave=leave)
        finally:
            self.closed = True
            self._processing = TaskProcessing()  # lets go of the task, and with it of what it raised
            self._over.notify()

    async def _see_closed(self, timeout: float) -> None:
        """Wait for a close that is under way, at most `timeout` seconds, unless that close waits for the caller."""
        group = self._session.group
        if any(map(is_inside, (self, self._polls, group and group.rebalance.telling))):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self.closed:
                    await self._over.wait(self._over.count)

    def _open(self) -> ConsumerCore:
        """The session, if this consumer may be used here and now."""
        self._check_usable()
        self._check_loop()
        return self._session

    def _check_loop(self) -> None:
        """Raise UsageError on another loop than that of the first call."""
        loop = running_loop()
        if self._loop is None:
            self._loop = loop
        elif loop is not None and self._loop is not loop:
            raise UsageError(
                "This consumer belongs to another event loop: its connections live there. "
                "Make a consumer for each loop, or call it from the loop that called it first."
            )

    def _check_loop_lives(self) -> None:
        """Raise UsageError if nothing of this consumer can be ended properly any more; it counts as closed then."""
        if self._loop is not None and self._loop.is_closed():
            self.closed = True
            raise UsageError(
                "The event loop of this consumer ended before it was closed. Its connections went with the loop: "
                "nothing was committed, and its group goes on without it only when the session times out. "
                "Close a consumer on the loop that used it, with `async with` or in a finally."
            )

    def _check_usable(self) -> None:
        self.check_process()
        if self.closed:
            raise closed_error()

    @property
    def in_its_process(self) -> bool:
        """Whether this is the process that made the consumer, and no fork of it."""
        return os.getpid() == self._pid

    def check_process(self) -> None:
        """Raise UsedAfterForkError in a forked process."""
        if not self.in_its_process:
            pid = os.getpid()
            raise UsedAfterForkError(
                f"This consumer was created in process {self._pid} and is used in process {pid}. A fork copies neither "
                "its connections nor its place in the group. Create it in the child: gunicorn's post_fork, celery's "
                "worker_process_init, or inside the function that multiprocessing runs.",
                created_pid=self._pid,
                pid=pid,
            )

    def _seconds(self, timeout: float | None) -> float:
        return (
            self._session.config.default_api_timeout_ms / 1000
            if timeout is None
            else checked_timeout(timeout)
        )


def warn_unclosed(consumer: object) -> None:
    """The warning of a consumer that the garbage collector found."""
    warnings.warn(
        f"{type(consumer).__name__} was not closed: nothing more was committed, and its group waits until the session "
        "times out. Use a with block, or call close() in a finally.",
        ResourceWarning,
        source=consumer,
        stacklevel=2,
    )


def _abandon(loop: asyncio.AbstractEventLoop, session: ConsumerCore) -> None:
    """End what runs for a consumer that was forgotten. Garbage is collected on any thread."""

    def begin() -> None:
        task = loop.create_task(close.abandon(session), name="kclient end")
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)

    with suppress(RuntimeError):  # the loop has ended, and with it all that ran
        loop.call_soon_threadsafe(begin)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs on this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
