"""What a stream knows of the logs: where they begin and end, which topic they belong to, as it was when last looked.

A broker that lags behind may tell less than was known: an earlier end, a partition missing, the id of a topic that is
no more. Looking goes on then, `fetchOffset.numRetries` times, before that is believed. Pure but for `look`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kclient.errors import UnknownTopicError
from kclient.spark.lookup import Lookup
from kclient.spark.options import SourceOptions
from kclient.spark.plan import LogBounds, behind
from kclient.types import TopicPartition

Offsets = dict[TopicPartition, int]

PATIENCE: Final = 0.25
"""After this share of the timeout it is asked anew which partitions there are: one may have gone since."""


class Outlook:
    """The logs of the partitions that the options choose. `frozen` holds ends that nothing may go beyond."""

    def __init__(self, options: SourceOptions) -> None:
        self.seen: dict[TopicPartition, LogBounds] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.frozen: Offsets | None = None
        self._options = options

    @property
    def ends(self) -> Offsets:
        """Where the logs ended, without asking again."""
        return {tp: log.end for tp, log in self.seen.items()}

    def within_frozen(self, also: Mapping[TopicPartition, int]) -> dict[TopicPartition, LogBounds]:
        """What was seen, without partitions that have appeared since the ends were frozen; those of `also` have not."""
        frozen = self.frozen
        return {tp: log for tp, log in self.seen.items() if frozen is None or tp in frozen or tp in also}

    def end_of(self, tp: TopicPartition, log: LogBounds) -> int:
        """How far the partition may be read: to its end, or to where it was frozen."""
        return log.end if self.frozen is None else min(log.end, self.frozen.get(tp, 0))

    async def partitions(self, lookup: Lookup) -> tuple[TopicPartition, ...]:
        """The chosen partitions. Raises ConfigError, and UnknownTopicError if a topic is not there after some tries."""
        options, retries_left = self._options, self._options.offset_retries
        while True:
            try:
                return await lookup.partitions(options.selection, internal=options.include_internal_topics)
            except UnknownTopicError:
                if not retries_left:
                    raise
            retries_left -= 1
            await self._pause()

    async def look(self, lookup: Lookup, known: Mapping[TopicPartition, int]) -> None:
        """See where the logs begin and end; again while it is less than what is `known`."""
        options = self._options
        for retries_left in reversed(range(options.offset_retries + 1)):
            found = await lookup.existing(options.selection, internal=options.include_internal_topics)
            self.seen = await lookup.log_bounds(found, PATIENCE)
            if not retries_left or not self._less_than(known):
                break
            await self._pause()
        if self.frozen is not None:  # a log that was cut has ended there; what is written now came later
            self.frozen = {tp: min(end, self.ends.get(tp, end)) for tp, end in self.frozen.items()}

    def frozen_behind(self, start: Mapping[TopicPartition, int]) -> None:
        """What was frozen before `start`, or without a partition of it, was told by a broker that lags behind: as much
        was read already. The ends that are seen now count.
        """
        if self.frozen is not None:
            self.frozen |= {
                tp: log.end for tp, log in self.seen.items() if self.frozen.get(tp, -1) < start.get(tp, -1)
            }

    def made_anew(self) -> list[str]:
        """The topics that have another id than before; from now on the new ones count."""
        ids = {tp.topic: log.topic_id for tp, log in self.seen.items() if log.topic_id is not None}
        found = [topic for topic, id_ in ids.items() if id_ != self.topic_ids.get(topic, id_)]
        self.topic_ids = ids
        return found

    def _less_than(self, known: Mapping[TopicPartition, int]) -> bool:
        ids = self.topic_ids
        return bool(behind(known, self.seen)) or any(
            tp not in self.seen or self.seen[tp].topic_id != ids.get(tp.topic, self.seen[tp].topic_id)
            for tp in known
        )

    async def _pause(self) -> None:
        await asyncio.sleep(self._options.offset_retry_interval_ms / 1000)
