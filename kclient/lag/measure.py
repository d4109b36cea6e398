"""Measure the lag of a group, with four kinds of requests.

    the group's coordinator      its members and their assignments            kclient.group.describe
                                 what it has committed                        kclient.group.offset_fetch
    any broker                   which of these topics there are
    each partition's leader      where the log begins and ends                kclient.positions.list_offsets

Ends are asked for after the commits, so that a group at work is never ahead of them. Nothing is changed by looking:
no topic is created, no group is joined.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Final, Self

import attrs

from kclient.config import Config
from kclient.errors import BrokerError, DeadlineError, KclientError, UnknownTopicError, VersionError
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.group.coordinator import Coordinator
from kclient.group.describe import DEAD, SIMPLE, GroupDescription, describe_group, list_groups
from kclient.group.offset_fetch import all_offsets
from kclient.lag.report import GroupLag, PartitionLag
from kclient.network.backoff import Backoff
from kclient.network.cluster import Cluster
from kclient.positions.list_offsets import list_offsets
from kclient.positions.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

CLOSE_SECONDS: Final = 2.0


class LagReader:
    """A client that measures the lag of groups until the end of its `async with`."""

    def __init__(self, config: Config, runtime: Runtime) -> None:
        self.config: Config = attrs.evolve(config, allow_auto_create_topics=False)
        self.runtime = runtime
        self.cluster: Cluster = Cluster(self.config, runtime)
        self._isolation = config.isolation
        self._started = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cluster.close(CLOSE_SECONDS)

    async def groups(self, timeout: float) -> list[str]:
        """Return the names of all consumer groups, and of groups that only store offsets."""
        async with limit_time(timeout, "the list of groups"):
            return await self._names()

    async def measure(
        self, group_id: str, topics: Iterable[str] | None, timeout: float, *, must_exist: bool = True
    ) -> GroupLag:
        """Measure the group as it is now; with `topics` only their partitions, also those without a commit.

        With `must_exist=False` a group that does not exist is an empty one that has committed nothing.

        Raises BrokerError with GROUP_ID_NOT_FOUND for a group that does not exist, UnknownTopicError for one of
        `topics` that neither exists nor has a commit, AuthorizationError, ConnectError, and DeadlineError after
        `timeout` seconds.
        """
        async with limit_time(timeout, f"the lag of group {group_id}"):
            await self.start()
            group, commits = await self._ask_coordinator(group_id, must_exist)
            return await self._compare(group, commits, None if topics is None else tuple(topics), timeout)

    # --- the group

    async def start(self) -> None:
        """Connect, unless that is done. Raise ConnectError."""
        if not self._started:
            await self.cluster.start()
            self._started = True

    async def _names(self) -> list[str]:
        await self.start()
        listed = await list_groups(self.cluster, self.config, self.runtime)
        return [group.group_id for group in listed if group.protocol_type in ("consumer", "")]

    async def _ask_coordinator(
        self, group_id: str, must_exist: bool
    ) -> tuple[GroupDescription, dict[TopicPartition, OffsetAndMetadata]]:
        coordinator = Coordinator(self.cluster, group_id, self.config, self.runtime)
        try:
            group = await describe_group(coordinator, self.config, self.runtime)
            if group is None and not must_exist:
                return GroupDescription(group_id, SIMPLE, DEAD, await coordinator.ensure()), {}
            if group is None:
                raise await self._not_found(group_id)
            return group, await all_offsets(coordinator, self.config, self.runtime)
        finally:
            await coordinator.close()

    async def _not_found(self, group_id: str) -> KclientError:
        near = get_close_matches(group_id, await self._names(), n=1)
        servers = ",".join(self.config.bootstrap_servers)
        listing = f"List the groups with: python -m kclient lag --all-groups -b {servers}"
        hint = f"Did you mean {near[0]}?" if near else listing
        return BrokerError(
            f"There is no group of consumers named {group_id!r}. "
            f"It has no members, and nothing is committed in its name, or no longer. {hint}",
            code=codes.GROUP_ID_NOT_FOUND,
            name="GROUP_ID_NOT_FOUND",
        )

    # --- its partitions

    async def _compare(
        self,
        group: GroupDescription,
        commits: dict[TopicPartition, OffsetAndMetadata],
        topics: Sequence[str] | None,
        timeout: float,
    ) -> GroupLag:
        holders = {partition: member for member in group.members for partition in member.partitions}
        known = [tp for tp in dict.fromkeys((*commits, *holders)) if topics is None or tp.topic in topics]
        states = await self._look_at(topics or [tp.topic for tp in known], timeout)
        for name in topics or ():
            if not states[name].exists and all(tp.topic != name for tp in known):
                raise _unknown_topic(name, group.group_id)
        rows = sorted({*known, *(tp for state in states.values() for tp in state.partitions())})
        problems = {tp: states[tp.topic].problem_of(tp.partition) for tp in rows}
        readable = [tp for tp in rows if problems[tp] is None]
        starts = await self.offsets(readable, EARLIEST_TIMESTAMP, timeout)
        ends = await self.offsets(readable, LATEST_TIMESTAMP, timeout)
        return GroupLag(
            group,
            self._isolation,
            tuple(
                PartitionLag(tp, commits.get(tp), starts.get(tp), ends.get(tp), holders.get(tp), problems[tp])
                for tp in rows
            ),
        )

    async def _look_at(self, topics: Iterable[str], timeout: float) -> dict[str, TopicState]:
        names = list(dict.fromkeys(topics))
        if not names:
            return {}
        try:
            response = await self.cluster.describe_topics(names, allow_auto_create=False, timeout=timeout)
        except VersionError:  # a broker before 0.11 would create what it is asked for by name
            response = await self.cluster.describe_topics(None, allow_auto_create=False, timeout=timeout)
        return topic_states(response, names)

    async def offsets(
        self, partitions: Sequence[TopicPartition], timestamp: int, timeout: float
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition at a time in ms (-2 the beginning, -1 the end), if there is one.

        Raise what `list_offsets` raises.
        """
        found = await list_offsets(
            self.cluster,
            dict.fromkeys(partitions, timestamp),
            self._isolation,
            backoff=Backoff.for_retries(self.config, self.runtime),
            timeout=timeout,
        )
        return {tp: at.offset for tp, at in found.items() if at is not None}


@asynccontextmanager
async def limit_time(seconds: float, what: str) -> AsyncIterator[None]:
    """Raise DeadlineError when the block takes longer than `seconds`; `what` was asked for."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as exc:
        if isinstance(exc, KclientError):
            raise
        raise DeadlineError(
            f"Asking for {what} took longer than {seconds:.3g} s. A broker does not answer, or a partition has lost "
            "its leader. Look at the brokers, or give more time with timeout.",
            waiting_for=what,
            timeout=seconds,
        ) from exc


def _unknown_topic(name: str, group_id: str) -> UnknownTopicError:
    return UnknownTopicError(
        f"There is no topic {name!r}, and group {group_id} has committed nothing of it. "
        "The name may be wrong. Leave the topic out to see all that the group reads.",
        topic=name,
    )


@attrs.frozen
class TopicState:
    """A topic as a broker describes it; `code` is an error code of the wire, `leaders` maps partitions to leaders."""

    name: str
    code: int
    leaders: Mapping[int, int]

    @property
    def exists(self) -> bool:
        """Return whether the topic exists, as far as the caller is authorized to know."""
        return self.code not in (codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC_EXCEPTION)

    def partitions(self) -> Iterable[TopicPartition]:
        """All of its partitions."""
        return [TopicPartition(self.name, number) for number in self.leaders]

    def problem_of(self, partition: int) -> str | None:
        """Return the error name if no leader can be asked for this partition's offsets, else None."""
        code = self.code
        if not code and partition not in self.leaders:
            code = codes.UNKNOWN_TOPIC_OR_PARTITION
        elif not code and self.leaders[partition] < 0:
            code = codes.LEADER_NOT_AVAILABLE
        return codes.error(code).name if code else None


def topic_states(response: MetadataResponse, names: Iterable[str]) -> dict[str, TopicState]:
    """Return the topics by these names; one that the response leaves out does not exist."""
    described = {topic.name: topic for topic in response.topics}
    return {name: _state(name, described.get(name)) for name in names}


def _state(name: str, topic: MetadataResponseTopic | None) -> TopicState:
    if topic is None:
        return TopicState(name, codes.UNKNOWN_TOPIC_OR_PARTITION, {})
    return TopicState(
        name, topic.error_code, {row.partition_index: row.leader_id for row in topic.partitions}
    )
