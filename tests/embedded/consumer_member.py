"""Members of the consumer protocol that talk to an embedded cluster on the running loop.

`Member` sends the requests that a test asks for. `Client` follows the protocol as a client library does, with an
application that may revoke slowly, and a network that may lose responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kclient.embedded.groups.consumer_protocol.member import by_topic
from kclient.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kclient.protocol import errors
from tests.embedded.raw_client import RawClient

Partition = tuple[bytes, int]


class Member:
    """It sends its own id and the epoch that the last good response gave it."""

    def __init__(
        self, raw_client: RawClient, group: str, member_id: str, instance_id: str | None = None
    ) -> None:
        self.raw_client, self.group = raw_client, group
        self.member_id, self.instance_id = member_id, instance_id
        self.epoch = 0

    async def beat(
        self,
        epoch: int | None = None,
        owned: Iterable[Partition] | None = None,
        node: int | None = None,
        version: int = 1,
        **fields: Any,
    ) -> Any:
        """One heartbeat with what it is given and nothing else."""
        if owned is not None:
            rows = by_topic(owned).items()  # type: ignore[arg-type]
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in rows
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance_id,
            **fields,
        )
        response = await self.raw_client.ask(request, version, node)
        if response.error_code == errors.NONE:
            self.epoch = response.member_epoch
        return response

    async def join(self, *topics: str, rebalance_timeout_ms: int = 30_000, **fields: Any) -> Any:
        """The first heartbeat, with everything that it must say."""
        said = {"subscribed_topic_names": list(topics), **fields}
        return await self.beat(0, owned=[], rebalance_timeout_ms=rebalance_timeout_ms, **said)


def partitions(response: Any) -> set[Partition] | None:
    """The assignment in a response, None where it says nothing."""
    if response.assignment is None:
        return None
    return {
        (row.topic_id, number) for row in response.assignment.topic_partitions for number in row.partitions
    }


async def described(raw_client: RawClient, group: str, node: int | None = None) -> Any:
    """What ConsumerGroupDescribe says."""
    [row] = (await raw_client.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1, node)).groups
    return row


class Client(Member):
    """Follows the protocol. `owned` is what its application may read; `target` the assignment of the last response."""

    def __init__(self, raw_client: RawClient, group: str, member_id: str, topics: list[str]) -> None:
        super().__init__(raw_client, group, member_id)
        self.topics = topics
        self.owned: set[Partition] = set()
        self.target: set[Partition] = set()
        self.said_all = False  # the coordinator has heard everything, and its response came

    async def step(self, *, slow: bool = False, lost: bool = False) -> None:
        """Heartbeat, then take the next step of its own. `slow`: nothing is given up yet; `lost`: no response came."""
        before = self.epoch
        response = await self._send()
        if lost:
            self.epoch, self.said_all = before, False
            return
        if response.error_code in (errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID):
            self.epoch, self.said_all = 0, False
            self.owned, self.target = set(), set()
            return
        assert response.error_code == errors.NONE, response
        self.said_all = True
        reported = partitions(response)
        self.target = self.target if reported is None else reported
        if self.owned <= self.target:
            self.owned = set(self.target)
        elif not slow:
            self.owned &= self.target  # what is new it takes when it has said that the old is given up

    async def subscribe(self, topics: list[str]) -> None:
        """Change the subscription; the next heartbeat sends it."""
        self.topics, self.said_all = topics, False

    async def _send(self) -> Any:
        if self.epoch == 0:
            return await self.join(*self.topics)
        if self.said_all:
            return await self.beat(owned=self.owned)
        full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": self.topics}
        return await self.beat(owned=self.owned, **full)
