"""Start of a consumer: the first connection to the cluster, then the tasks that run until close().

not begun    no call has needed a broker yet
starting     connecting to the cluster; continues when the call that began it has timed out
running      the position updater and the fetcher run
ending       close() has stopped the group and stops the tasks
"""

from __future__ import annotations

import asyncio
from typing import Any

from kclient.consumer.subscription import SubscriptionState
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts
from kclient.fetch.fetcher import Fetcher
from kclient.network.cluster import Cluster
from kclient.positions.updater import PositionUpdater


class Lifecycle:
    """Starts the tasks of one consumer, once. `ending` is the task of close() that stops them."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: SubscriptionState,
        timeouts: CallTimeouts,
        tasks: BackgroundTasks,
        position_updater: PositionUpdater,
        fetcher: Fetcher,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._timeouts = timeouts
        self._tasks = tasks
        self._position_updater = position_updater
        self._fetcher = fetcher
        self._start: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the cluster was reached and the tasks run. False once close() is ending them."""
        start = self._start
        if self.ending is not None or start is None:
            return False
        return start.done() and not start.cancelled() and start.exception() is None

    @property
    def started(self) -> bool:
        """Whether anything of this consumer may run, or be connected."""
        return self._start is not None and self.ending is None

    async def start(self) -> None:
        """Connect and start the background tasks, once. Raise what `Cluster.start` raises; a later call tries again.

        A try continues when its caller has timed out. If it fails then, the next call raises the error, so that callers
        with short timeouts see it too.
        """
        if self._start is None or self._start.cancelled():
            self._start = asyncio.create_task(self._begin(), name="kclient start")
            self._start.add_done_callback(_retrieve)
        start = self._start
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if self._start is start:
                self._start = None  # its error is raised here
            raise

    async def _begin(self) -> None:
        self._cluster.set_topics(self._subscription.metadata_topics)
        await self._cluster.start()
        if self._timeouts.closing:
            return  # only asynchronous commits wait for the connection
        self._tasks.start("position updater", self._position_updater.run)
        self._tasks.start("fetcher", self._fetcher.run)

    async def cancel_start(self) -> None:
        """Cancel a start that has not succeeded."""
        if self._start is not None and not self._start.done():
            self._start.cancel()
            await asyncio.wait([self._start])


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from logging the error of a start without a waiter: the next call raises it."""
    if not task.cancelled():
        task.exception()
