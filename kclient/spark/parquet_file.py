"""One Parquet file that grows by batches and gets its name when all of it is on the disk.

Row groups hold about 122,880 rows, fewer where rows are large, so that a worker's memory is bounded. Only the topic is
encoded by a dictionary: keys and values rarely repeat, and trying costs more than it saves. Columns of raw bytes have
no statistics: the library keeps six copies of the largest value for them, and leaves out what is longer than 4 KiB.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kclient.spark.durable import make_directory, publish, sync, temporary_name, told

ROW_GROUP_ROWS: Final = 122_880
ROW_GROUP_BYTES: Final = 67_108_864
DICTIONARY: Final = ["_topic"]
EXTRA: Final = {"zstd": {"compression_level": 1}}


class ParquetFile:
    """Rows of one schema on their way to `path`. Every method may raise SinkError."""

    def __init__(self, path: Path, schema: pa.Schema, codec: str) -> None:
        self.path = path
        self.rows = 0
        self.bytes = 0
        self._schema = schema
        self._temporary = temporary_name(path)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        with told(path):
            make_directory(path.parent)
            self._writer = pq.ParquetWriter(
                self._temporary,
                schema,
                compression=codec,
                use_dictionary=[name for name in DICTIONARY if name in schema.names],
                write_statistics=_other_than_bytes(schema),
                **EXTRA.get(codec, {}),
            )

    def add(self, batch: pa.RecordBatch) -> None:
        """Write whole row groups; what is left waits for the next batch."""
        self.rows += len(batch)
        self._waiting.append(batch)
        self._waiting_rows += len(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write(min(self._waiting_rows, ROW_GROUP_ROWS))

    def finish(self) -> None:
        """Write the rest and put it on the disk under the hidden name."""
        if self._waiting:
            self._write(self._waiting_rows)
        with told(self.path):
            self._writer.close()
            sync(self._temporary)
            self.bytes = self._temporary.stat().st_size

    def publish(self) -> None:
        """Give it its name, once its bytes are on the disk."""
        with told(self.path):
            publish(self._temporary, self.path)

    def discard(self) -> None:
        """Leave nothing behind, if it has no name yet."""
        with told(self.path):
            self._writer.close()
            self._temporary.unlink(missing_ok=True)

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        with told(self.path):
            self._writer.write_table(table.slice(0, rows), row_group_size=ROW_GROUP_ROWS)
        rest = table.slice(rows)
        self._waiting = rest.to_batches()
        self._waiting_rows = rest.num_rows
        self._waiting_bytes = rest.nbytes
        pa.default_memory_pool().release_unused()  # it would keep what the pages of the largest row group took


@lru_cache(maxsize=16)
def _other_than_bytes(schema: pa.Schema) -> list[str]:
    """The paths of all columns in a file but those of raw bytes, as the library calls them."""
    empty = BytesIO()
    pq.write_table(schema.empty_table(), empty)
    leaves = pq.ParquetFile(empty).schema
    columns = [leaves.column(index) for index in range(len(leaves.names))]
    return [
        column.path
        for column in columns
        if column.physical_type != "BYTE_ARRAY" or column.logical_type.type != "NONE"
    ]
