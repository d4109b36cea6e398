"""What the look-ups of positions share: whom they ask, what they change, and how a failed question is treated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.log import ThrottledLogger, get_logger
from kclient.network.backoff import Backoff
from kclient.positions.jumps import Jumped
from kclient.positions.stored_errors import StoredErrors
from kclient.positions.strategy import ResetPolicy
from kclient.positions.table import Positions
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


logger = get_logger("kclient.positions")


@attrs.frozen(eq=False)
class Shared:
    """One of these for all look-ups of a consumer. `spawn` starts work that ends with the upkeep, `jumped` is told of
    positions that were lost and moved."""

    cluster: Cluster
    positions: Positions
    config: Config
    runtime: Runtime
    policy: ResetPolicy
    errors: StoredErrors
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    jumped: Jumped
    throttled: ThrottledLogger = attrs.field(factory=lambda: ThrottledLogger(logger))

    @property
    def request_timeout(self) -> float:
        """How long a question may be in flight, in seconds."""
        return self.config.request_timeout_ms / 1000

    def backoff(self) -> Backoff:
        """The delays between attempts of one kind of question."""
        return Backoff.for_retries(self.config, self.runtime)

    def saw_epoch(self, tp: TopicPartition, epoch: int | None) -> None:
        """An answer named a leader epoch: older metadata does not count from now on."""
        self.cluster.saw_leader_epoch(tp, epoch)

    def sent(self, eras: Mapping[TopicPartition, int]) -> None:
        """These are in flight and are not asked for again before the request must have failed."""
        self.positions.set_asked(eras, self.runtime.now() + self.request_timeout)

    def failed(
        self, kind: str, eras: Mapping[TopicPartition, int], error: KclientError, delay: float
    ) -> None:
        """Ask again after `delay` seconds with fresh metadata; what no retry heals is told by the next poll."""
        self.positions.ask_again_at(eras, self.runtime.now() + delay)
        self.cluster.request_update(f"{kind} failed")
        if not error.retriable:
            self.errors.store(kind, error, eras)
