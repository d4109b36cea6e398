"""Partitions that got an error: each is left alone for a while at the node that it came from, not at others."""

from __future__ import annotations

from collections.abc import Container

import attrs

from kclient.config import Config
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.types import TopicPartition


@attrs.define(eq=False)
class _Delay:
    backoff: Backoff
    node_id: int = -1
    until: float = 0.0
    code: int = 0


class Delays:
    """Partition → until when it is not asked for, and where; growing with every error in a row."""

    def __init__(self, config: Config, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._delays: dict[TopicPartition, _Delay] = {}

    def failed(self, tp: TopicPartition, node_id: int, code: int = 0) -> None:
        """The node answered with an error for the partition."""
        delay = self._delays.get(tp)
        if delay is None:
            config = self._config
            backoff = Backoff.for_retries(config, self._runtime)
            delay = self._delays[tp] = _Delay(backoff)
        delay.node_id, delay.code = node_id, code
        delay.until = self._runtime.now() + delay.backoff.next()

    def succeeded(self, tp: TopicPartition, node_id: int) -> None:
        """The node answered without one."""
        if (delay := self._delays.get(tp)) is not None and delay.node_id == node_id:
            del self._delays[tp]

    def last(self, tp: TopicPartition, node_id: int) -> tuple[float, int]:
        """Until when the partition is left alone at this node, and the error's code; zeros if there was none."""
        delay = self._delays.get(tp)
        return (delay.until, delay.code) if delay is not None and delay.node_id == node_id else (0.0, 0)

    def ends(self, now: float) -> list[float]:
        """The moments at which delays end."""
        return [delay.until for delay in self._delays.values() if delay.until > now]

    def retain(self, partitions: Container[TopicPartition]) -> None:
        """Forget all other partitions."""
        self._delays = {tp: delay for tp, delay in self._delays.items() if tp in partitions}
