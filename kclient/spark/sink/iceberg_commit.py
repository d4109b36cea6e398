"""What a commit of a batch adds to an Iceberg table, by pyiceberg's transactions, where those would do otherwise.

pyiceberg's own retries are switched off. They would add the files to a newer version without looking at the progress in
it, and so count a batch twice that another run has committed in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.table import Table as Version
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    TableRequirement,
    TableUpdate,
    UpdatesAndRequirements,
    _apply_table_update,
    _TableMetadataUpdateContext,
)
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import Record
from pyiceberg.types import BinaryType, DateType, IcebergType, TimestampType, TimestamptzType

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.offsets import dump_offsets
from kclient.spark.sink.iceberg_history import SUMMARY
from kclient.spark.sink.iceberg_io import data_location
from kclient.spark.sink.iceberg_schema import any_value, column_changes, scale_of
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.tables import TableCommit

NO_RETRIES: Final = {"commit.retry.num-retries": "0"}
MERGING: Final = {"commit.manifest-merge.enabled": "true"}
"""The default of Iceberg itself: 100 manifests become one. pyiceberg's is false, and its readers open each of them."""

MOST_NAMED: Final = 100
"""Partitions of one summary."""

BEARABLE_MS: Final = 60_000
"""By how much the history of a table may go back for Iceberg's Java."""

METRICS: Final = "write.metadata.metrics.column."
_TIMES: Final = (DateType, TimestampType, TimestamptzType)


def changes_between(before: Version, files: pa.Schema, now: Version) -> Iterator[str]:
    """Yield why files with these columns, which were prepared for one version, must not go into another."""
    if now.metadata.table_uuid != before.metadata.table_uuid:
        yield "it was dropped and created again"
    if data_location(now) != data_location(before):
        yield f"its files go to {data_location(now)} and no more to {data_location(before)}"
    if now.spec().spec_id != before.spec().spec_id:
        yield "its partition spec is another one"
    if now.metadata.current_schema_id != before.metadata.current_schema_id:
        yield from column_changes(files, now.schema())


def with_our_defaults(base: Version) -> Version:
    """Return a version whose transactions try once, take any partition value, and merge manifests by default.

    The table's own properties may forbid to merge.
    """
    properties = {**MERGING, **base.metadata.properties, **NO_RETRIES}
    specs = [any_value(spec) for spec in base.metadata.partition_specs]
    metadata = base.metadata.model_copy(update={"properties": properties, "partition_specs": specs})
    return Version(base.name(), metadata, base.metadata_location, base.io, base.catalog, base.config)


class LandingTransaction(Transaction):
    """A transaction that computes its metadata once after each change, and shares the snapshots of its table.

    pyiceberg computes them at every look, fifteen times in a commit, and copies all snapshots in depth each time. With
    1,000 snapshots that was most of a commit's time.
    """

    _computed: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            return self._table.metadata
        if self._computed is None or self._computed[0] is not self._updates:
            context, found = _TableMetadataUpdateContext(), self._table.metadata
            for update in self._updates:
                found = _apply_table_update(update, found, context)
            self._computed = (self._updates, found)
        return self._computed[1]

    def _stage(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()
    ) -> Transaction:
        return super()._stage(tuple(map(self._in_order, updates)), requirements)

    def _in_order(self, update: TableUpdate) -> TableUpdate:
        """Give a snapshot a time after those in the table, which may be of a clock that is ahead.

        Iceberg's Java reads no table whose history goes back by more than a minute.
        """
        if not isinstance(update, AddSnapshotUpdate):
            return update
        snapshot = update.snapshot
        later_ms = max(_newest_ms(self._table.metadata) + 1, snapshot.timestamp_ms)
        return AddSnapshotUpdate(snapshot=snapshot.model_copy(update={"timestamp_ms": later_ms}))


def _newest_ms(metadata: TableMetadata) -> int:
    """Return the newest time in the history of a table."""
    snapshots = [each.timestamp_ms for each in metadata.snapshot_log[-1:]]
    versions = [each.timestamp_ms for each in metadata.metadata_log[-1:]]
    return max([metadata.last_updated_ms, *snapshots, *versions])


class LandingAppend(_MergeAppendFiles):
    """An append that leaves manifests as they are whose partition type is lost, because a column of their spec is gone.

    pyiceberg cannot write them again. No new ones are made, so they stay few.
    """

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        known, specs = self.schema().field_ids, self._transaction.table_metadata.partition_specs
        lost = {spec.spec_id for spec in specs if not {field.source_id for field in spec.fields} <= known}
        kept = [each for each in manifests if each.partition_spec_id in lost]
        others = [each for each in manifests if each.partition_spec_id not in lost]
        return super()._process_manifests(others) + kept


class SchemaGrowth(UpdateSchema):
    """A change of a schema that adds and widens columns. Required ones stay required; pyiceberg would relax them."""

    def make_column_optional(self, path: str | tuple[str, ...]) -> UpdateSchema:
        return self

    def update_column(
        self,
        path: str | tuple[str, ...],
        field_type: IcebergType | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> UpdateSchema:
        """Change a column as pyiceberg does, but never the scale of a decimal: the values would be other ones."""
        was = self._schema.find_field(path if isinstance(path, str) else ".".join(path)).field_type
        if field_type is not None and scale_of(was) != scale_of(field_type):
            raise ValidationError(f"Cannot change column type: {path}: {was} -> {field_type}")
        return super().update_column(path, field_type, required, doc)

    def _commit(self) -> UpdatesAndRequirements:
        updates, requirements = super()._commit()
        if updates:
            self._check_clock(self._transaction._table)
        return updates, requirements

    def _check_clock(self, table: Version) -> None:
        """Refuse a change before the newest in a table: pyiceberg gives it the time of this machine."""
        ahead_ms = _newest_ms(table.metadata) - Runtime().wall_ms()
        if ahead_ms > BEARABLE_MS:
            name = ".".join(table.name())
            raise SinkError(
                f"No column can be added to {name} now: its newest version is {ahead_ms // 1000} s ahead of the clock "
                "of this machine, and Iceberg reads no table whose history goes back. Correct the clock that is wrong, "
                "here or where that version was written. Start again once this one is past that time.",
                path=name,
            )


def summary_of(commit: TableCommit) -> dict[str, str]:
    """Return what a snapshot says of its batch. It is short: each commit writes that of all snapshots again."""
    batch = {f"{SUMMARY}job": commit.job, f"{SUMMARY}batch": str(commit.batch)}
    end = {tp: end for tp, end in commit.end.items() if commit.start.get(tp) != end}
    if len(end) > MOST_NAMED:
        return batch
    start = {tp: start for tp, start in commit.start.items() if tp in end}
    return {**batch, f"{SUMMARY}start": dump_offsets(start), f"{SUMMARY}end": dump_offsets(end)}


class DataFiles:
    """The data files of one commit, as Iceberg describes them."""

    def __init__(self, version: Version) -> None:
        schema = version.schema()
        kinds = {name: schema.find_type(name) for name in schema.column_names}
        # Columns of raw bytes have no statistics: see parquet.py.
        none = {f"{METRICS}{name}": "none" for name, kind in kinds.items() if isinstance(kind, BinaryType)}
        counts = {f"{METRICS}{name}": "counts" for name, kind in kinds.items() if isinstance(kind, _TIMES)}
        self._root = data_location(version)
        self._spec = version.spec().spec_id
        self._plan = compute_statistics_plan(schema, {**version.properties, **none})
        self._plan_without_times = compute_statistics_plan(schema, {**version.properties, **none, **counts})
        self._ids = parquet_path_to_id_mapping(schema)

    def of(self, file: WrittenFile) -> DataFile:
        """Return one file, with the statistics of its footer."""
        footer = pq.read_metadata(BytesIO(file.footer or b""))
        try:
            statistics = data_file_statistics_from_parquet_metadata(footer, self._plan, self._ids)
        except OverflowError:  # Python has no years after 9999, where a producer's wrong clock may lead
            statistics = data_file_statistics_from_parquet_metadata(
                footer, self._plan_without_times, self._ids
            )
        for bounds in statistics.column_aggregates.values():
            if isinstance(bounds.current_max, str):
                # pyiceberg cuts it and counts the last character up. U+D7FF has no next one; a bound may be larger.
                bounds.current_max = bounds.current_max.replace("\ud7ff", "\ue000")
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self._root}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*file.values),
            file_size_in_bytes=file.bytes,
            sort_order_id=None,
            spec_id=self._spec,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
