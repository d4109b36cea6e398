"""Which groups there are: ListGroups, asked of every broker, for each knows only those that it coordinates."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kclient.config import Config
from kclient.errors import KclientError
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.generated.list_groups_response import ListedGroup, ListGroupsResponse
from kclient.group.form import expect
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


async def list_groups(cluster: Cluster, config: Config, runtime: Runtime) -> list[ListedGroup]:
    """Every group that the caller may see, by name. The caller bounds it; a broker that is away is waited for."""
    backoff = Backoff.for_retries(config, runtime)
    found: dict[str, ListedGroup] = {}
    for node_id in sorted(cluster.metadata.brokers):
        while True:
            try:
                found |= {group.group_id: group for group in await _ask(cluster, node_id)}
                break
            except KclientError as exc:
                if not exc.retriable:
                    raise
            await asyncio.sleep(backoff.next())
    return [found[name] for name in sorted(found)]


async def _ask(cluster: Cluster, node_id: int) -> list[ListedGroup]:
    answer = expect(ListGroupsResponse, await cluster.request(node_id, ListGroupsRequest()))
    if answer.error_code != codes.NONE:
        raise broker_error(answer.error_code, f"Listing the groups of broker {node_id}")
    return answer.groups
