"""`lag` and `lag_async`: one group, measured once, by a client that lives no longer than the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from kclient.bridge import LoopThread
from kclient.config import load
from kclient.errors import ArgumentError
from kclient.lag.measure import LagReader
from kclient.lag.report import GroupLag
from kclient.runtime import Runtime
from kclient.timeouts import checked_timeout


async def lag_async(
    group_id: str,
    *,
    topics: Iterable[str] | None = None,
    timeout: float | None = None,
    config: Mapping[str, Any] | None = None,
    properties: str | PathLike[str] | None = None,
    runtime: Runtime | None = None,
    **settings: Any,
) -> GroupLag:
    """Return the lag of a group, for asyncio; `lag` is the same for threads.

        report = await lag_async("billing", bootstrap_servers="localhost:9092", isolation_level="read_committed")
        for one in report.partitions:
            print(one.partition, one.committed, one.end, one.lag)

    The group may be classic, of KIP-848, or one that only stores offsets; it need not have members, and does not
    notice. Without `topics` the report has every partition that is committed or assigned, with all other partitions
    of these topics; with `topics` the partitions of those. `isolation_level` decides what the end is. The other
    settings are those of a consumer; `timeout` is in seconds (None: default_api_timeout_ms).

    Raises BrokerError with GROUP_ID_NOT_FOUND for a group that does not exist, UnknownTopicError for one of `topics`
    that neither exists nor has a commit, AuthorizationError, ConnectError, DeadlineError, ConfigError, and
    ArgumentError for a group or topics that are not valid names.
    """
    if not isinstance(group_id, str):
        raise ArgumentError(f"A group's name is text, not {group_id!r}. Ask about several groups one by one.")
    if isinstance(topics, str | bytes):
        raise ArgumentError(f"Topics must be a list of names, not the single {topics!r}. Write [{topics!r}].")
    loaded = load(settings, config, properties)
    seconds = loaded.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)
    async with LagReader(loaded, runtime or Runtime()) as meter:
        return await meter.measure(group_id, topics, seconds)


def lag(
    group_id: str,
    *,
    topics: Iterable[str] | None = None,
    timeout: float | None = None,
    config: Mapping[str, Any] | None = None,
    properties: str | PathLike[str] | None = None,
    runtime: Runtime | None = None,
    **settings: Any,
) -> GroupLag:
    """Return the lag of a group, for threads; everything else is as in `lag_async`."""
    user = object()
    thread = LoopThread.join(user)
    try:
        report: GroupLag = thread.run(
            lambda: lag_async(
                group_id,
                topics=topics,
                timeout=timeout,
                config=config,
                properties=properties,
                runtime=runtime,
                **settings,
            )
        )
        return report
    finally:
        thread.leave(user)
