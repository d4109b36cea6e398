"""Whose offsets are whose in a sink in an object store, where no lock keeps a job and its backfills apart.

    _kclient/claims/000000000001    {"name": "kclient-…", "start": {…}, "end": null, …}  a job, from its start on
    _kclient/claims/000000000002    {"name": "backfill-…", "start": {…}, "end": {…}}     a backfill

Who wants to land reads all claims and creates the one with the next number, once; where another was faster it reads
again. So of two that overlap the later one sees the earlier, and is refused before it has written anything. A claim
stays when its holder is killed: the same backfill goes on with it.

Two jobs are not compared: `sinks.check_sinks` does that by their manifests. Of a place of dead letters these say it too
late, since there is none before the first bad record. So its first job claims it, also in a directory:

    _kclient/owner.json    {"job": "…", "sink": "…"}
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import attrs

from kclient.errors import SinkError
from kclient.spark.ingest.checkpoint import Offsets
from kclient.spark.ingest.setting_values import matches
from kclient.spark.offsets import MAX_OFFSET, dump_offsets, parse_offsets
from kclient.spark.sink.store import Store, is_remote, store_of
from kclient.types import TopicPartition

CLAIMS: Final = "_kclient/claims"
OWNER: Final = "_kclient/owner.json"
TRIES: Final = 20
_KEY: Final = re.compile(rf"{CLAIMS}/([0-9]{{12}})", re.ASCII)


@attrs.frozen
class OffsetClaim:
    """The offsets that one job or backfill lands, and nobody else; without an `end` all that come.

    `topics` are those of a job as the user named them: a pattern takes topics that did not exist at its start.
    """

    name: str
    start: Offsets
    end: Offsets | None = None
    topics: tuple[str, ...] = ()

    def overlap(self, other: OffsetClaim) -> TopicPartition | None:
        """Return a partition of which both have offsets, None if there is none."""
        for tp in {**self.start, **other.start}:
            (first, last), (theirs_first, theirs_last) = self._range(tp), other._range(tp)
            if max(first, theirs_first) < min(last, theirs_last):
                return tp
        return None

    def _range(self, tp: TopicPartition) -> tuple[int, int]:
        """Return its offsets of a partition. A job reads new partitions of its topics from their beginning."""
        if self.end is not None:
            return self.start.get(tp, 0), self.end.get(tp, 0)
        is_of_job = any(tp.topic == known.topic for known in self.start) or any(
            matches(name, tp.topic) for name in self.topics
        )
        return self.start.get(tp, 0), MAX_OFFSET if is_of_job else 0

    def dump(self) -> bytes:
        """Return it as JSON."""
        end = None if self.end is None else json.loads(dump_offsets(self.end))
        start = json.loads(dump_offsets(self.start))
        content = {"name": self.name, "start": start, "end": end, "topics": self.topics}
        return json.dumps(content).encode()


def claim(sink: str, wanted: OffsetClaim) -> None:
    """Claim offsets in a sink, unless its name has them already; a directory has its lock. Raises SinkError."""
    if not is_remote(sink):
        return
    store = store_of(sink)
    for _ in range(TRIES):
        found = {key: _read(store, key) for key in _keys(store)}
        if any(other.name == wanted.name for other in found.values()):
            return
        for key, other in found.items():
            _check(store.place(key), other, wanted)
        number = max((int(key[-12:]) for key in found), default=0) + 1
        if store.put_if_absent(f"{CLAIMS}/{number:012d}", wanted.dump()):
            return
    raise SinkError(
        f"{sink} is claimed by others again and again: {TRIES} began meanwhile. Something starts backfills in a loop, "
        "or on many machines. Stop the others, and start again.",
        path=sink,
    )


def claim_dead_letters(where: str, job: str, sink: str) -> None:
    """Make a place of dead letters this job's, for good. Raises SinkError if it is another one's."""
    if not store_of(where).put_if_absent(OWNER, _owner(job, sink)):
        raise _owned(where)


def check_dead_letters(where: str, job: str | None, sink: str) -> None:
    """Refuse a place of dead letters that another job has claimed. Raises SinkError."""
    if store_of(where).read(OWNER) not in (None, _owner(job, sink)):
        raise _owned(where)


def _owner(job: str | None, sink: str) -> bytes:
    """Return the content of a claim. In two tables two jobs may have one name, so the sink is a part of it."""
    return json.dumps({"job": job, "sink": sink}).encode()


def _owned(where: str) -> SinkError:
    place = store_of(where).place(OWNER)
    return SinkError(
        f"{where} are the dead letters of another job, which {place} names. Batches of both have the same numbers, so "
        "one would write over the dead letters of the other. Give --dlq another place.",
        path=where,
    )


def _check(place: str, other: OffsetClaim, wanted: OffsetClaim) -> None:
    """Refuse offsets that another one has claimed. Raises SinkError."""
    if (other.end is None and wanted.end is None) or (tp := other.overlap(wanted)) is None:
        return
    raise SinkError(
        f"{other.name} lands offsets of {tp} that {wanted.name} was to land too. They would count twice, so nothing "
        f"was written. {place} says which offsets are its own: give others, with --start and --end. If it was killed, "
        "start it again; if it has landed nothing and never will, delete that object.",
        path=place,
    )


def _keys(store: Store) -> list[str]:
    return sorted(each.key for each in store.list(CLAIMS) if _KEY.fullmatch(each.key))


def _read(store: Store, key: str) -> OffsetClaim:
    """Return a claim; one that was deleted since it was listed has nothing. Raises SinkError."""
    text = store.read(key)
    if text is None:
        return OffsetClaim("", {}, {})
    try:
        content = json.loads(text)
        end = content["end"]
        return OffsetClaim(
            content["name"],
            _offsets(content["start"]),
            None if end is None else _offsets(end),
            tuple(content.get("topics", ())),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise SinkError(
            f"The claim {store.place(key)} cannot be read: {exc!r}. It was damaged, or written by another program. "
            "Restore it from a copy: it says which offsets are those of a job or of a backfill.",
            path=store.place(key),
        ) from exc


def _offsets(content: Any) -> Offsets:
    return parse_offsets(json.dumps(content)) if content else {}
