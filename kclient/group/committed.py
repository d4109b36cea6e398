"""Reading the offsets that a group has stored back from its coordinator.

One question asked until it is answered for every partition, with a pause before each new try. The caller bounds it.
A member with an epoch (KIP-848) asks under its newest one; if the coordinator calls that stale, it waits for the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kclient.config import Config
from kclient.errors import KclientError
from kclient.generated.offset_fetch_response import OffsetFetchResponse
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Identity
from kclient.group.offset_fetch import Committed, FetchAnswer, FetchQuestion
from kclient.group.offset_questions import Tell, follow_up, ids_by_name, unheard
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.types import TopicPartition

logger = get_logger("kclient.commit")


class CommittedOffsets:
    """What one group has stored. `reader` says under which name to ask."""

    def __init__(
        self,
        coordinator: Coordinator,
        config: Config,
        runtime: Runtime,
        reader: Callable[[], Identity] = Identity,
    ) -> None:
        self._coordinator = coordinator
        self._config = config
        self._runtime = runtime
        self._reader = reader

    async def fetch(self, partitions: Sequence[TopicPartition], tell: Tell = unheard) -> Committed:
        """The committed offset of each partition, None where nothing is committed; asked until every one is answered.

        `tell` hears why it takes longer.

        Raises TopicAuthorizationError, GroupAuthorizationError, UnknownTopicError, BrokerError.
        """
        committed: Committed = {}
        left = list(dict.fromkeys(partitions))
        backoff = Backoff.for_retries(self._config, self._runtime)
        while left:
            try:
                answer = await self._fetch_once(left)
            except KclientError as exc:
                if not exc.retriable:
                    raise
                why = exc.text
            else:
                committed |= answer.found
                if not (left := answer.left):
                    break
                why = answer.why_left
            tell(why)
            logger.debug("group %s: committed offsets not read yet: %s", self._coordinator.group_id, why)
            await asyncio.sleep(backoff.next())
        return {partition: committed[partition] for partition in partitions}

    async def _fetch_once(self, partitions: Sequence[TopicPartition]) -> FetchAnswer:
        coordinator = self._coordinator
        await coordinator.ensure()
        ids = ids_by_name(coordinator.cluster.metadata, dict.fromkeys(partitions))
        question = FetchQuestion(coordinator.group_id, partitions, ids, self._reader())
        only_stable = self._config.internal_throw_on_fetch_stable_offset_unsupported
        forms = question.forms(only_stable=only_stable)
        answer = question.read(await coordinator.request(OffsetFetchResponse, *forms))
        if answer.stale_epoch and not self._reader().by_epoch:
            answer.error = question.stale()
        follow_up(coordinator, answer)
        return answer
