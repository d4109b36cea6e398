"""`kclient ingest verify`: whether every offset of every range is in the table once, counted in the table itself."""

from __future__ import annotations

import json as json_form
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from kclient.cli import program
from kclient.cli.exit_codes import DATA, OK
from kclient.cli.options import ConnectionOptions, WhereAsked, check_catalog, flag, option
from kclient.cli.reporters import warnings_shown
from kclient.cli.table import table
from kclient.errors import ArgumentError, ConfigError
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.resume import named_table, open_table
from kclient.spark.ingest.setting_values import Location, location
from kclient.spark.options import SourceOptions
from kclient.spark.sink.tables import LakeTable
from kclient.text import format_count

if TYPE_CHECKING:
    from kclient.spark.sink.verify import Span, VerifiedPartition

TITLES: Final = ("TOPIC", "PARTITION", "FROM", "TO", "ROWS", "DUPLICATES", "MISSING", "ABSENT", "UNKNOWN")
LISTED: Final = 20
"""Spans of offsets that are listed for each partition, of duplicates and of missing ones."""


@warnings_shown()
def verify(
    *,
    checkpoint: Annotated[
        str | None, option("the job's checkpoint, which names its table", "DIR|URL")
    ] = None,
    sink: Annotated[
        str | None, option("the table, without a checkpoint", "iceberg:CATALOG.NAMESPACE.TABLE|delta:DIR")
    ] = None,
    job: Annotated[str | None, option("the job's name in it, without a checkpoint", "NAME")] = None,
    catalog: Annotated[str | None, option("the Iceberg catalogs, in the form of pyiceberg", "FILE")] = None,
    json: Annotated[bool, flag("one JSON object")] = False,
    connection: Annotated[WhereAsked, Parameter(name="*")] = WhereAsked(),  # noqa: B008 – frozen
) -> int:
    """Read the table of a job, and list offsets that are there twice or not at all; with -b say why not.

    A gap in the offsets is missing if the log has a record there, absent if it has none (compaction, transactions), and
    unknown if the log does not reach that far. Give -b with the job's own --set isolation.level. It exits with 6 for
    duplicates, missing records and unknown offsets; without -b for any gap.
    """
    from kclient.spark.ingest.verification import verify as verify_table

    where, name, cluster_id = _job(checkpoint, sink, job)
    if not where.is_lake:
        raise ArgumentError(
            f"{where} has no table that verify reads: give a job with --sink iceberg:… or delta:…"
        )
    check_catalog(where, catalog)
    opened = named_table(where, catalog) if sink is not None else open_table(where, catalog)
    found = verify_table(opened, name, _logs(opened, name, connection), cluster_id)
    proven = all(each.is_proven for each in found)
    if json:
        sys.stdout.write(json_form.dumps(_fields(where, name, found, proven=proven)) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(found)))
        sys.stderr.write(_sentence(found, proven=proven) + "\n")
    return OK if proven else DATA


def _job(checkpoint: str | None, sink: str | None, job: str | None) -> tuple[Location, str, str | None]:
    """Return the table, the name of the job, and the id of its cluster if known. Raises ArgumentError, ConfigError."""
    if checkpoint is not None and sink is None and job is None:
        kept = Checkpoint(checkpoint).job()
        if kept is None:
            raise ConfigError(
                f"{checkpoint} holds no checkpoint of an ingest job. Give --sink and --job instead."
            )
        return kept.location, kept.job, kept.cluster_id
    if checkpoint is not None or sink is None or job is None:
        raise ArgumentError(
            f"give --checkpoint, or both --sink and --job. Type: {program()} ingest verify --checkpoint DIR"
        )
    try:
        return location(sink), job, None
    except ValueError as exc:
        raise ArgumentError(f"--sink {exc}") from None


def _logs(opened: LakeTable[Any], job: str, connection: ConnectionOptions) -> SourceOptions | None:
    """Return the options to read the job's topics with, None without -b."""
    from kclient.spark.ingest.verification import landed

    servers, theirs = connection.source()
    if servers is None:
        return None
    version = opened.find()
    topics = [] if version is None else sorted({tp.topic for tp in landed(opened, version, job)})
    given = {"kafka.bootstrap.servers": servers, "subscribe": ",".join(topics) or "none", **theirs}
    return SourceOptions.parse(given)


def _lines(found: list[VerifiedPartition]) -> list[str]:
    rows = [_row(each) for each in found]
    listed = [line for each in found for line in _listed(each)]
    return [*(table(TITLES, rows, right=TITLES[1:]) if rows else []), *listed]


def _row(found: VerifiedPartition) -> tuple[str, ...]:
    known = found.explained
    gaps = ("-", "-", found.gaps) if known is None else (known.missing, known.absent, known.unknown)
    numbers = (found.claimed.start, found.claimed.end, found.rows, _size(found.duplicates))
    sizes = (each if isinstance(each, str) else f"{_size(each):,}" for each in gaps)
    return (found.tp.topic, str(found.tp.partition), *(f"{number:,}" for number in numbers), *sizes)


def _listed(found: VerifiedPartition) -> list[str]:
    known = found.explained
    kinds = {"duplicate": found.duplicates, "missing": known.missing if known else ()}
    if known is None:
        kinds["gap"] = found.gaps
    return [line for kind, spans in kinds.items() for line in _spans(found, kind, spans)]


def _spans(found: VerifiedPartition, kind: str, spans: tuple[Span, ...]) -> list[str]:
    lines = [f"{kind} {found.tp} {span}" for span in spans[:LISTED]]
    return lines + ([f"{kind} {found.tp} and {len(spans) - LISTED} more"] if len(spans) > LISTED else [])


def _size(spans: Iterable[Span]) -> int:
    return sum(span.size for span in spans)


def _sentence(found: list[VerifiedPartition], *, proven: bool) -> str:
    rows, outside = sum(each.rows for each in found), sum(each.outside for each in found)
    beside = f"; {format_count(outside, 'row')} of other offsets" if outside else ""
    if proven:
        return f"every offset is there once: {format_count(rows, 'row')}{beside}"
    twice = sum(_size(each.duplicates) for each in found)
    gaps = sum(_size(each.gaps) for each in found if each.explained is None)
    lost = sum(_size(each.explained.missing) for each in found if each.explained is not None)
    asked = f", {gaps:,} not there: give -b HOST:PORT to learn whether they ever were" if gaps else ""
    missing = f", {lost:,} missing" if lost else ""
    gone = sum(_size(each.explained.unknown) for each in found if each.explained is not None)
    unknown = f", {gone:,} unknown: the log does not hold them" if gone else ""
    return f"not proven: {twice:,} offsets twice{missing}{asked}{unknown}{beside}"


def _fields(where: Location, job: str, found: list[VerifiedPartition], *, proven: bool) -> dict[str, Any]:
    """Return the fields of the JSON output. Spans are [first, after the last]."""
    return {
        "sink": str(where),
        "job": job,
        "proven": proven,
        "rows": sum(each.rows for each in found),
        "partitions": [
            {
                "topic": each.tp.topic,
                "partition": each.tp.partition,
                "start": each.claimed.start,
                "end": each.claimed.end,
                "rows": each.rows,
                "outside": each.outside,
                "duplicates": each.duplicates,
                "gaps": each.gaps,
                "missing": None if each.explained is None else each.explained.missing,
                "absent": None if each.explained is None else each.explained.absent,
                "unknown": None if each.explained is None else each.explained.unknown,
            }
            for each in found
        ],
    }
