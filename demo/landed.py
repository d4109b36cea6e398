"""What has landed, from the sink alone: manifests of Parquet, or the versions of a table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from demo.job import Job
from kclient.spark.sink import manifest

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("carrier", "dep_delay", "arr_delay")


@attrs.frozen
class Landed:
    """A batch that counts. `at` is the wall clock in seconds."""

    number: int
    rows: int
    bytes: int
    files: int
    at: float


def load_libraries(kind: str) -> None:
    """Import the clients before threads run: in CPython 3.11 two threads must not parse code at once."""
    readers = {"iceberg": ("pyiceberg.catalog.sql", "pyiceberg.io.pyarrow"), "delta": ("deltalake",)}
    for name in ("kclient.consumer.core", *readers.get(kind, ())):
        import_module(name)


def landed(job: Job) -> list[Landed]:
    """Return the batches that count; none before the sink is there."""
    return list({"parquet": _by_manifest, "iceberg": _by_iceberg, "delta": _by_delta}[job.kind](job))


def _by_manifest(job: Job) -> Iterator[Landed]:
    for found in manifest.read_all(job.sink):
        at = (job.sink / manifest.DIRECTORY / f"{found.name}.json").stat().st_mtime
        yield Landed(int(found.name), found.rows, found.bytes, len(found.files), at)


def _by_iceberg(job: Job) -> Iterator[Landed]:
    from pyiceberg.exceptions import NoSuchTableError
    from sqlalchemy.exc import OperationalError

    try:
        snapshots = iceberg_table(job).snapshots()
    except (NoSuchTableError, OperationalError):  # the job has not made it yet, or is about to commit
        return
    for snapshot in snapshots:
        said = {} if snapshot.summary is None else snapshot.summary.additional_properties
        names = ("records", "files-size", "data-files")
        rows, size, files = (int(said.get(f"added-{name}", 0)) for name in names)
        yield Landed(int(said["kclient.batch"]), rows, size, files, snapshot.timestamp_ms / 1000)


def _by_delta(job: Job) -> Iterator[Landed]:
    from deltalake.exceptions import TableNotFoundError

    try:
        table = delta_table(job)
    except TableNotFoundError:
        return
    before = (0, 0, 0)
    for one in [one for one in reversed(table.history()) if "kclient.batch" in one]:
        now = _delta_totals(job, one["version"])
        added, size, files = (after - earlier for after, earlier in zip(now, before, strict=True))
        yield Landed(int(one["kclient.batch"]), added, size, files, one["timestamp"] / 1000)
        before = now


@cache
def _delta_totals(job: Job, version: int) -> tuple[int, int, int]:
    """Return rows, bytes and files of a version, which never change."""
    from deltalake import DeltaTable

    table = DeltaTable(job.place, version=version, storage_options=_options(job))
    actions: Any = table.get_add_actions()
    rows, sizes = (actions.column(name).to_pylist() for name in ("num_records", "size_bytes"))
    return sum(rows), sum(sizes), len(sizes)


def iceberg_table(job: Job) -> Any:
    """Return the table, as pyiceberg opens it."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("demo", **job.properties).load_table("db.flights")


def delta_table(job: Job) -> Any:
    """Return the table, as delta-rs opens it."""
    from deltalake import DeltaTable

    return DeltaTable(job.place, storage_options=_options(job))


def _options(job: Job) -> dict[str, str]:
    return {} if job.endpoint is None else {"allow_http": "true"}


def read(job: Job) -> tuple[pa.Table, int]:
    """Return the flights by one reader that is not ours, and their number by another one."""
    import polars
    import pyarrow.dataset as ds

    if job.kind == "iceberg":
        table = iceberg_table(job)
        return table.scan(selected_fields=COLUMNS).to_arrow(), _count(polars.scan_iceberg(table))
    if job.kind == "delta":
        frame = polars.scan_delta(job.place, storage_options=_options(job))
        return delta_table(job).to_pyarrow_table(columns=list(COLUMNS)), _count(frame)
    files = manifest.files(job.sink)
    return ds.dataset(files).to_table(columns=list(COLUMNS)), _count(polars.scan_parquet(files))


def _count(frame: Any) -> int:
    import polars

    return int(frame.select(polars.len()).collect().item())
