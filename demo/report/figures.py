"""The figures besides the charts: recovery after each kill, throughput, delays, machine and versions. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from statistics import median

import attrs

from demo.recording import KILLED, Batch, Count, Recording


@attrs.frozen
class Figure:
    """A line of the table: what was measured, the value, how it was measured."""

    name: str
    value: str
    meaning: str


def figures(run: Recording) -> list[Figure]:
    """Return all figures of this run; lines without data are left out."""
    return [*_recoveries(run), *_throughput(run), *_delays(run), *_machine(run)]


def recovery_of_job(run: Recording) -> tuple[float, float] | None:
    """When the job was killed, and the seconds until the first batch of its second run counted."""
    killed = [
        span.end for span in run.spans if span.lane == "ingest" and span.killed and span.end is not None
    ]
    landed = [batch.end for batch in run.batches if batch.run > 1]
    return (killed[0], min(landed) - killed[0]) if killed and landed else None


def _recoveries(run: Recording) -> Iterator[Figure]:
    if (job := recovery_of_job(run)) is not None:
        meaning = "from SIGKILL until the first batch of the job that was started again counts"
        yield Figure("The job killed", _seconds(job[1]), meaning)
    for one in run.recoveries:
        yield Figure(one.name, _seconds(one.seconds), one.meaning)


def _throughput(run: Recording) -> Iterator[Figure]:
    reads = [span for span in run.spans if span.state == "reads"]
    if run.numbers is not None and reads:
        seconds = max(span.end or run.seconds for span in reads) - min(span.start for span in reads)
        rate = run.numbers.consumed / max(seconds, 0.001)
        meaning = f"by the group, both kills included: {run.numbers.consumed:,} in {seconds:.1f} s"
        yield Figure("Consumed and committed", f"{rate:,.0f} records/s", meaning)
    if run.batches:
        rows, seconds = sum(batch.rows for batch in run.batches), sum(_took(batch) for batch in run.batches)
        meaning = f"{rows:,} rows in the {seconds:.1f} s in which a batch was under way"
        where = "in Parquet" if run.numbers is None else run.numbers.place
        yield Figure(f"Landed {where}", f"{rows / max(seconds, 0.001):,.0f} rows/s", meaning)


def _delays(run: Recording) -> Iterator[Figure]:
    if (one := run.latency) is not None:
        meaning = (
            f"median; p99 {_seconds(one.p99)}, longest {_seconds(one.longest)}, of {one.records:,} records, one every "
            "50 ms in a topic of their own, read without a group, from before the group joined until it was done"
        )
        yield Figure("From publish to read", _seconds(one.median), meaning)
    found = delays_until_landed(run.published, run.batches)
    if found:
        meaning = (
            f"until it counts, half of the batches; at most {max(found):.1f} s, across the killed job. "
            "By counts: the n-th row against the n-th record"
        )
        yield Figure("From acknowledged to landed", _seconds(median(found)), meaning)


def _machine(run: Recording) -> Iterator[Figure]:
    for name, value in run.machine.items():
        yield Figure(name, value, "")


def delays_until_landed(published: Sequence[Count], batches: Sequence[Batch]) -> list[float]:
    """For each batch the time from the acknowledgement of its first record to its end."""
    totals, landed, found = [count.total for count in published], 0, []
    for batch in sorted(batches, key=lambda batch: batch.end):
        place = bisect_left(totals, landed + 1)
        if place < len(published):
            found.append(max(0.0, batch.end - published[place].at))
        landed += batch.rows
    return found


def text_with_recovery(run: Recording, kind: str, at: float, text: str) -> str:
    """The text of an event, and after a kill how long its work stood still."""
    if kind != KILLED:
        return text
    job = recovery_of_job(run)
    known = [(one.at, one.seconds) for one in run.recoveries] + ([job] if job is not None else [])
    near = [seconds for moment, seconds in known if abs(moment - at) < 0.2]
    return f"{text}; the work went on after {_seconds(near[0])}" if near else text


def _took(batch: Batch) -> float:
    return batch.end - batch.start


def _seconds(value: float) -> str:
    if value < 0.01:
        return f"{value * 1000:.1f} ms"
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"
