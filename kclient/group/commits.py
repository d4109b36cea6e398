"""Storing offsets with the group's coordinator, and reading them back.

Both are one question asked until it is answered for every partition: failures that pass by themselves are followed by
a pause and another try, built anew from what is known then. The caller bounds it. A commit that must not be tried
again (`retry=False`) raises CommitFailedError with `retriable` instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from kclient.config import Config
from kclient.errors import ArgumentError, CommitFailedError, KclientError
from kclient.generated.offset_commit_response import OffsetCommitResponse
from kclient.generated.offset_fetch_response import OffsetFetchResponse
from kclient.group.commit_failure import commit_failed
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Identity
from kclient.group.offset_commit import CommitAnswer, CommitQuestion
from kclient.group.offset_fetch import Committed, FetchAnswer, FetchQuestion
from kclient.network.backoff import Backoff
from kclient.protocol.errors import error as error_code
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

logger = logging.getLogger("kclient.commits")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Refused = Callable[[int, Identity], KclientError]
Turn = Callable[[], Awaitable[None]]


async def no_turn() -> None:
    """Whoever commits waits for nobody."""


class Commits:
    """Commits of one group. Spec: S1-26…S1-32, S0-19…S0-33, B.14, B.15.7, B.15.8.

    `identity` says under which generation and member id to commit, or raises CommitFailedError; without membership it
    is `lambda: Identity()`. `refused` is told that the coordinator does not count that identity in any more (22, 25,
    27, 82), and returns the error for the user; `ClassicMembership.commit_refused` is one.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        config: Config,
        runtime: Runtime,
        identity: Callable[[], Identity] = Identity,
        refused: Refused | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._config = config
        self._runtime = runtime
        self._identity = identity
        self._refused = refused or self._occupied

    async def commit(self, offsets: Offsets, *, retry: bool, turn: Turn = no_turn) -> None:
        """Store offsets, each the next one to consume. Nothing is sent for an empty mapping.

        With `retry` what passes by itself is tried again until the caller's timeout. Without it `turn` is awaited once
        the coordinator is connected, and then the request goes out before anything else can. Raises CommitFailedError,
        TopicAuthorizationError, GroupAuthorizationError, BrokerError, ArgumentError for a negative offset.

        Spec: B.14.1, B.14.2, B.15.8.
        """
        left = dict(offsets)
        self._check(left)
        backoff = Backoff.for_retries(self._config, self._runtime)
        identity: Identity | None = None
        while left:
            try:
                identity = self._same_identity(identity)
                left = await self._commit_once(left, identity, None if retry else turn)
            except CommitFailedError as error:
                error.uncommitted = left
                raise
            except KclientError as error:
                if not error.retriable:
                    raise
                if not retry:
                    raise self._not_retried(error.text, left) from error
            if left and not retry:
                raise self._not_retried("the coordinator could not store them now", left)
            if left:
                await asyncio.sleep(backoff.next())

    async def fetch(self, partitions: Sequence[TopicPartition]) -> Committed:
        """The committed offset of each partition, None where nothing is committed; asked until every one is answered.

        Raises TopicAuthorizationError, GroupAuthorizationError, UnknownTopicError, BrokerError.

        Spec: S0-19…S0-33, B.14.6, B.14.7, B.15.7.
        """
        committed: Committed = {}
        left = list(dict.fromkeys(partitions))
        backoff = Backoff.for_retries(self._config, self._runtime)
        while left:
            try:
                answer = await self._fetch_once(left)
            except KclientError as error:
                if not error.retriable:
                    raise
                logger.debug(
                    "group %s: committed offsets not read yet: %s", self._coordinator.group_id, error
                )
            else:
                committed |= answer.found
                left = answer.left
            if left:
                await asyncio.sleep(backoff.next())
        return {partition: committed[partition] for partition in partitions}

    # --- one try

    async def _commit_once(
        self, offsets: Offsets, identity: Identity, turn: Turn | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """One OffsetCommit; returns what was not stored and may be tried again."""
        coordinator = self._coordinator
        await (coordinator.ensure() if turn is None else self._reach(turn))
        self._same_identity(identity)
        question = CommitQuestion(coordinator.group_id, identity, offsets, self._topic_ids(offsets))
        answer = question.read(await coordinator.request(OffsetCommitResponse, question.form()))
        if answer.no_member is not None:
            raise self._refused(answer.no_member, identity)
        if answer.group_gone:
            raise commit_failed("group_gone", coordinator.group_id, "the coordinator does not know the group")
        self._follow_up(answer)
        return answer.left

    async def _reach(self, turn: Turn) -> None:
        """Be connected when our turn has come. Raises KclientError."""
        await self._coordinator.connect()
        await turn()
        self._coordinator.require_connection()

    async def _fetch_once(self, partitions: Sequence[TopicPartition]) -> FetchAnswer:
        coordinator = self._coordinator
        await coordinator.ensure()
        question = FetchQuestion(coordinator.group_id, partitions, self._topic_ids(partitions))
        answer = question.read(await coordinator.request(OffsetFetchResponse, *question.forms()))
        self._follow_up(answer)
        return answer

    def _follow_up(self, answer: CommitAnswer | FetchAnswer) -> None:
        """What an answer asks for beyond trying again. Raises its error."""
        if answer.coordinator_moved is not None:
            code = error_code(answer.coordinator_moved)
            self._coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
        if answer.stale_topics:
            self._coordinator.cluster.request_update(
                "the coordinator does not know a topic", reset_backoff=False
            )
        if answer.error is not None:
            raise answer.error

    # --- small parts

    def _same_identity(self, before: Identity | None) -> Identity:
        """Who we are. Raises CommitFailedError if we may not commit, or are not who we were `before`.

        In a newer generation the partitions may be another member's, who has committed more. Spec: B.13.9, I-08.
        """
        identity = self._identity()
        if before not in (None, identity):
            group_id = self._coordinator.group_id
            raise commit_failed("rebalancing", group_id, "the group has rebalanced since it was asked for")
        return identity

    def _check(self, offsets: Offsets) -> None:
        cluster = self._coordinator.cluster
        for partition, offset in offsets.items():
            if offset.offset < 0:
                raise ArgumentError(
                    f"The offset {offset.offset} to commit for {partition} is negative. "
                    "An offset counts from 0. Commit the offset of the next record to consume."
                )
            epoch = offset.leader_epoch
            if epoch is not None and cluster.metadata.update_last_seen_epoch(partition, epoch):
                cluster.request_update("a commit names a newer leader epoch")

    def _topic_ids(self, partitions: Iterable[TopicPartition]) -> Mapping[str, bytes] | None:
        """The ids of all topics, None if one is unknown: then only versions without ids can be used."""
        ids: dict[str, bytes] = {}
        for partition in partitions:
            topic_id = self._coordinator.cluster.metadata.topic_id(partition.topic)
            if topic_id is None:
                return None
            ids[partition.topic] = topic_id
        return ids

    def _not_retried(self, why: str, left: Offsets) -> CommitFailedError:
        return commit_failed("retriable", self._coordinator.group_id, why, left)

    def _occupied(self, code: int, identity: Identity) -> KclientError:
        """The refusal of a commit from outside of the group."""
        known = error_code(code)
        why = f"the coordinator answered {known.name} ({code})"
        return commit_failed("occupied", self._coordinator.group_id, why)
