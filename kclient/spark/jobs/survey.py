"""What the cluster says before a job begins: which cluster it is, its logs, where to start, and how much is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kclient.errors import ConfigError, KclientError, UnknownTopicError
from kclient.spark.driver import Driver, Link
from kclient.spark.fetching import RangeFetcher
from kclient.spark.jobs.starts import Start
from kclient.spark.jobs.values import matches
from kclient.spark.options import SourceOptions
from kclient.spark.plan import LogBounds, OffsetRange
from kclient.spark.resolving import resolve_start
from kclient.types import TopicPartition

SAMPLE_BYTES: Final = 65_536
SAMPLE_MS: Final = 5_000
MOST_TOLD: Final = 5
MOST_SAMPLES: Final = 32
"""Of more partitions no sizes are told: that many requests are not worth an estimate."""


@attrs.frozen
class Survey:
    """What was found. `start` is where each partition starts; `sizes` are bytes of backlog, estimated."""

    cluster_id: str | None
    bounds: Mapping[TopicPartition, LogBounds]
    start: Mapping[TopicPartition, int]
    sizes: Mapping[TopicPartition, int]

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic, where the cluster has ids."""
        return {tp.topic: log.topic_id.hex() for tp, log in self.bounds.items() if log.topic_id}


def survey(driver: Driver, options: SourceOptions, start: Mapping[TopicPartition, int] | None) -> Survey:
    """Look at the cluster. `start` is what a checkpoint says, None for what the options say.

    What the checkpoint names and is not there any more is left out: whether that is an error is for the stream to say,
    as of any loss. Raises ConnectError, AuthorizationError, UnknownTopicError, ConfigError, DeadlineError.
    """
    return driver.ask(lambda link: _survey(link, options, start))


def check_topics(names: Iterable[str], found: Survey) -> None:
    """Refuse to begin without a topic for each name: a checkpoint that is bound to a misspelt one is of no use.

    Raises UnknownTopicError.
    """
    topics = {tp.topic for tp in found.bounds}
    for name in names:
        if not any(matches(name, topic) for topic in topics):
            raise UnknownTopicError(
                f"No topic matches {name} in this cluster. It is misspelt, or has no topic yet. "
                "Correct --topics, or create one first.",
                topic=name,
            )


def check_offsets(given: Start, found: Survey) -> None:
    """Refuse to begin at offsets of a file that no log has: a checkpoint would keep them. Raises ConfigError."""
    logs = found.bounds
    wrong = [
        f"{tp} at {offset}, of {logs[tp].start} to {logs[tp].end}"
        for tp, offset in found.start.items()
        if given.offsets is not None and not logs[tp].start <= offset <= logs[tp].end
    ]
    if wrong:
        raise ConfigError(
            f"--start gives offsets that are not there: {'; '.join(wrong[:MOST_TOLD])}. The file is of other logs, or "
            "their records were deleted since. Correct it; with --accept-data-loss the job begins at what is nearest.",
            problems=tuple(wrong),
        )


def check_kept_start(given: Start, kept: Mapping[TopicPartition, int]) -> None:
    """Refuse other offsets than those where a first run decided to begin. Raises ConfigError."""
    other = [
        f"{tp} at {kept.get(tp, 'its beginning')}, not {offset}"
        for tp, offset in (given.offsets or {}).items()
        if kept.get(tp) != offset
    ]
    if other:
        raise ConfigError(
            f"The job of this checkpoint begins elsewhere than --start says: {'; '.join(other[:MOST_TOLD])}. Its first "
            "run decided that. No batch has begun: give a new checkpoint, or leave --start out.",
            problems=tuple(other),
        )


async def _survey(link: Link, options: SourceOptions, start: Mapping[TopicPartition, int] | None) -> Survey:
    chosen = link.lookup.partitions if start is None else link.lookup.existing
    partitions = await chosen(options.selection, internal=options.include_internal_topics)
    bounds = await link.lookup.log_bounds(partitions)
    if start is None:
        begins: Mapping[TopicPartition, int] = await resolve_start(link.lookup, options, bounds)
    else:
        begins = {tp: start.get(tp, log.start) for tp, log in bounds.items()}
    waiting = [
        OffsetRange(*tp, max(begins[tp], log.start), log.end, log.topic_id) for tp, log in bounds.items()
    ]
    waiting = [wanted for wanted in waiting if wanted.size]
    sizes = {
        wanted.tp: await _size(link, options, wanted) for wanted in waiting if len(waiting) <= MOST_SAMPLES
    }
    known = {tp: size for tp, size in sizes.items() if size is not None}
    return Survey(link.cluster.metadata.cluster_id, bounds, begins, known)


async def _size(link: Link, options: SourceOptions, wanted: OffsetRange) -> int | None:
    """Bytes of a range, if all of it is like its beginning. None where that cannot be read now."""
    config = attrs.evolve(link.config, max_partition_fetch_bytes=SAMPLE_BYTES)
    patience = attrs.evolve(options, poll_timeout_ms=SAMPLE_MS, read_ahead=0)
    fetcher = RangeFetcher(link.cluster, config, link.runtime, wanted, patience)
    try:
        piece = await fetcher.next()
    except KclientError:
        return None
    finally:
        await fetcher.close()
    if piece is None or piece.next_offset is None:
        return None
    return len(piece.data) * wanted.size // max(1, piece.next_offset - piece.position)
