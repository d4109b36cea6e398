"""What the commands ask of a cluster and change in it: topics, offsets, groups. One connection pool for a command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Final

from kclient.cli import program
from kclient.errors import KclientError, UnknownTopicError, VersionError
from kclient.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kclient.generated.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from kclient.generated.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kclient.generated.describe_log_dirs_response import DescribeLogDirsResponse
from kclient.generated.list_groups_response import ListedGroup
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.group.coordinator import Coordinator, expect
from kclient.group.delete import delete_group
from kclient.group.describe import list_groups
from kclient.group.offset_commit import OffsetCommitter
from kclient.lag.measure import LagReader, limit_time
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.types import OffsetAndMetadata, TopicPartition

TOPIC: Final = 2  # the resource type of DescribeConfigs


class AdminClient(LagReader):
    """A LagReader that also describes topics and their sizes, and moves and deletes what groups have committed."""

    @property
    def timeout(self) -> float:
        """The time for one call, in seconds: default.api.timeout.ms."""
        return self.config.default_api_timeout_ms / 1000

    async def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return the metadata of topics, None for all. Raise UnknownTopicError, TopicAuthorizationError."""
        async with limit_time(self.timeout, "the metadata of topics"):
            await self.start()
            names = None if topics is None else list(dict.fromkeys(topics))
            response = await self._describe(names)
            found = {one.name: one.error_code for one in response.topics}
            for name in names or ():
                # A broker that leaves a topic out does not have it, either.
                code = found.get(name, codes.UNKNOWN_TOPIC_OR_PARTITION)
                if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
                    everything = await self._describe(None)
                    raise unknown_topic(name, [one.name for one in everything.topics])
                if code == codes.TOPIC_AUTHORIZATION_FAILED:
                    raise broker_error(code, f"Describing topic {name}", topics=[name])
        return response

    async def _describe(self, topics: Sequence[str] | None) -> MetadataResponse:
        return await self.cluster.describe_topics(topics, allow_auto_create=False, timeout=self.timeout)

    async def offsets_of_topics(
        self, topics: Sequence[MetadataResponseTopic], timestamp_ms: int
    ) -> dict[TopicPartition, int]:
        """Return an offset for each partition that has a leader, as `offsets` does."""
        partitions = [
            TopicPartition(topic.name or "", row.partition_index)
            for topic in topics
            for row in topic.partitions
            if row.leader_id >= 0
        ]
        return await self.offsets(partitions, timestamp_ms, self.timeout)

    async def bytes_of_topics(
        self, topics: Sequence[MetadataResponseTopic]
    ) -> dict[TopicPartition, int] | None:
        """Return the bytes of each log, those of its leader's replica (KIP-113).

        None if this client may not see them (DESCRIBE on the cluster), or the brokers are older than Kafka 1.0.
        Raise ConnectError, BrokerError, DeadlineError.
        """
        led: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for topic in topics:
            for row in topic.partitions:
                if row.leader_id >= 0:
                    led[row.leader_id][topic.name or ""].append(row.partition_index)
        sizes: dict[TopicPartition, int] = {}
        async with limit_time(self.timeout, "the sizes of logs"):
            await self.start()
            for node_id, wanted in led.items():
                try:
                    found = await self._bytes_on(node_id, wanted)
                except VersionError:
                    return None
                if found is None:
                    return None
                sizes |= found
        return sizes

    async def _bytes_on(
        self, node_id: int, wanted: Mapping[str, list[int]]
    ) -> dict[TopicPartition, int] | None:
        rows = [DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in wanted.items()]
        response = await self.cluster.request(node_id, DescribeLogDirsRequest(topics=rows))
        described = expect(DescribeLogDirsResponse, response)
        if described.error_code not in (codes.NONE, codes.CLUSTER_AUTHORIZATION_FAILED):
            raise broker_error(described.error_code, f"Describing the log directories of node {node_id}")
        if not described.results:  # also how versions before 3 refuse: every broker has a directory
            return None
        return {
            TopicPartition(topic.name, row.partition_index): row.partition_size
            for directory in described.results
            for topic in directory.topics
            for row in topic.partitions
            if not row.is_future_key and row.partition_index in wanted.get(topic.name, ())
        }

    async def topic_configs(self, topic: str) -> DescribeConfigsResult:
        """Return the configuration of a topic. Raise TopicAuthorizationError, BrokerError."""
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)
            ]
        )
        async with limit_time(self.timeout, f"the configuration of topic {topic}"):
            await self.start()
            _, response = await self.cluster.request_any(request)
        results = expect(DescribeConfigsResponse, response).results
        result = results[0] if results else DescribeConfigsResult(error_code=codes.UNKNOWN_SERVER_ERROR)
        if result.error_code != codes.NONE:
            doing = f"Describing the configuration of topic {topic}"
            raise broker_error(result.error_code, doing, topics=[topic], message=result.error_message)
        return result

    async def listed_groups(self) -> list[ListedGroup]:
        """Return all groups of the cluster that this client may see, also those that are not of consumers."""
        async with limit_time(self.timeout, "the list of groups"):
            await self.start()
            return await list_groups(self.cluster, self.config, self.runtime)

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets in the name of a group without members. Raise CommitFailedError while it has some."""
        async with (
            limit_time(self.timeout, f"the commit for group {group_id}"),
            self._coordinator(group_id) as one,
        ):
            committer = OffsetCommitter(one, self.config, self.runtime)
            await committer.commit({tp: OffsetAndMetadata(at) for tp, at in offsets.items()}, retry=True)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members. Raise BrokerError, GroupAuthorizationError."""
        async with (
            limit_time(self.timeout, f"the deletion of group {group_id}"),
            self._coordinator(group_id) as one,
        ):
            await delete_group(one, self.config, self.runtime)

    @asynccontextmanager
    async def _coordinator(self, group_id: str) -> AsyncIterator[Coordinator]:
        await self.start()
        coordinator = Coordinator(self.cluster, group_id, self.config, self.runtime)
        try:
            yield coordinator
        finally:
            await coordinator.close()


def unknown_topic(name: str, existing: Iterable[str | None]) -> KclientError:
    """Return the error for a topic that is not among the existing ones."""
    near = get_close_matches(name, [one for one in existing if one], n=1)
    hint = f"Did you mean {near[0]}?" if near else f"List the topics with: {program()} topics -b HOST:PORT"
    return UnknownTopicError(
        f"There is no topic {name!r}. The name may be wrong, or the topic was deleted, or this client may not see it. "
        f"{hint}",
        topic=name,
        nearest=near[0] if near else None,
    )
