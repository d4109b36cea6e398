"""How a run begins: where the last one ended, what the topic holds by now, and that both are of one topic."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.errors import ConfigError, UnknownTopicError
from kclient.spark.choices import Topics
from kclient.spark.driver import Driver, Link
from kclient.spark.jobs.offsets_history.settings import TOPIC, OffsetsHistorySettings
from kclient.spark.jobs.offsets_history.store import STATE, State, Store
from kclient.spark.plan import LogBounds, OffsetRange, next_starts, report
from kclient.spark.splitting import split
from kclient.types import TopicPartition


@attrs.frozen
class Beginning:
    """Where a run begins, and what it has to read. `topics` are those that may be described, with their ids."""

    state: State
    ranges: tuple[OffsetRange, ...]
    partitions: int
    topics: Mapping[str, bytes]
    resumed: bool


def begin(settings: OffsetsHistorySettings, driver: Driver, store: Store) -> Beginning:
    """Look at both sides; remove what a killed run left behind where it had come to.

    A new history is known by its state before it has a file. Raises ConfigError for the directory of another cluster or
    another topic, or one whose state is lost; SinkError, and what the driver raises.
    """
    kept = store.state()
    if kept is None and store.has_tables():
        raise ConfigError(
            f"The directory {settings.out} has tables, but not the file {STATE}, which says how far they go. Restore "
            "that file from a copy, or give another --out: the topic is compacted, so nobody can read it all again."
        )
    cluster_id, bounds = driver.ask(_survey)
    topic_id = min((log.topic_id.hex() for log in bounds.values() if log.topic_id), default=None)
    state = kept or State(cluster_id=cluster_id, topic_id=topic_id, offsets={})
    _check_same(settings.out, state, cluster_id, topic_id)
    starts = _starts(state, bounds, warn=kept is not None)
    state = attrs.evolve(state, topic_id=state.topic_id or topic_id, offsets={**state.offsets, **starts})
    if kept is None:
        store.keep(state)
    store.tidy({tp.partition: offset for tp, offset in starts.items()})
    whole = [OffsetRange(*tp, starts[tp], log.end, log.topic_id) for tp, log in bounds.items()]
    return Beginning(
        state=state,
        ranges=tuple(split([one for one in whole if one.size > 0], None, settings.records_per_file)),
        partitions=len(bounds),
        topics=driver.ask(_topics),
        resumed=kept is not None,
    )


def _starts(
    state: State, bounds: Mapping[TopicPartition, LogBounds], *, warn: bool
) -> dict[TopicPartition, int]:
    """Where reading goes on. Never before where it was, as what is kept from there on would be removed: a log that ends
    earlier was told of by a broker that lags behind, or lost what it had.
    """
    starts, losses = next_starts(state.offsets, bounds)
    report(losses if warn else (), fail=False)
    return {tp: max(offset, state.offsets.get(tp, offset)) for tp, offset in starts.items()}


async def _survey(link: Link) -> tuple[str | None, dict[TopicPartition, LogBounds]]:
    partitions = await link.lookup.existing(Topics((TOPIC,)), internal=True)
    if not partitions:
        raise UnknownTopicError(
            f"No group has committed an offset on this cluster yet: there is no topic {TOPIC}. The brokers create it "
            "when the first consumer group joins or commits. Run again when one has, or look at another cluster.",
            topic=TOPIC,
        )
    return link.cluster.metadata.cluster_id, await link.lookup.log_bounds(partitions)


async def _topics(link: Link) -> dict[str, bytes]:
    answer = await link.cluster.describe_topics(
        None, allow_auto_create=False, timeout=link.config.default_api_timeout_ms / 1000
    )
    return {topic.name: topic.topic_id for topic in answer.topics if topic.name}


def _check_same(out: str, state: State, cluster_id: str | None, topic_id: str | None) -> None:
    """Offsets of two topics cannot be ordered, those of two clusters even less."""
    if state.cluster_id != cluster_id:
        raise ConfigError(
            f"The directory {out} holds the history of the cluster {state.cluster_id!r}, and this is {cluster_id!r}. "
            "Both together would be the history of none. Give this cluster a directory of its own."
        )
    if None not in (state.topic_id, topic_id) and state.topic_id != topic_id:
        raise ConfigError(
            f"The topic {TOPIC} was made anew: the directory {out} holds the history of the one with the id "
            f"{state.topic_id}, and now it is {topic_id}. That history is whole: keep it, and give another --out."
        )
