"""Large values as Arrow columns made by pyarrow: put together one by one, joined only up to a limit, the same rows."""

from __future__ import annotations

import pytest

from kclient.records import arrow_binary
from kclient.records.compression import Compression
from kclient.records.reader import PartitionReader
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch
from tests.records.support import take_all

VALUES = [b"a" * 40, None, b"", b"b" * 30, None, b"c" * 50, b"d" * 7]


@pytest.fixture(autouse=True)
def without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extension has no such limits."""
    monkeypatch.setattr("kclient.records.arrow.is_native", lambda: False)


def table_of(codec: Compression, *batches: list[bytes | None]) -> tuple[list[bytes | None], int]:
    """The values of a table of these batches, and of how many pieces its columns are."""
    field = b"".join(
        build_batch([NewRecord(b"key", value) for value in values], base_offset=10 * index, compression=codec)
        for index, values in enumerate(batches)
    )
    table = Records(take_all(PartitionReader("t", 0, field, 0))).to_arrow()
    assert table.column("key").to_pylist() == [b"key"] * len(table)
    return table.column("value").to_pylist(), table.column("value").num_chunks


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("large", [1, 10, arrow_binary.LARGE_BYTES])
def test_the_rows_do_not_depend_on_what_counts_as_large(
    codec: Compression, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_binary, "LARGE_BYTES", large)
    assert table_of(codec, VALUES, VALUES[::-1])[0] == VALUES + VALUES[::-1]
    for value in VALUES:
        assert table_of(codec, [value])[0] == [value]


def test_batches_of_different_data_are_joined_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_binary, "MOST_JOINED_BYTES", 300)
    batches = [VALUES] * 4  # about 200 bytes each
    assert table_of(Compression.ZSTD, *batches) == (VALUES * 4, 4)
    assert table_of(Compression.NONE, *batches) == (VALUES * 4, 1)  # all of it lies in one field already
    monkeypatch.setattr(arrow_binary, "MOST_JOINED_BYTES", 2**25)
    assert table_of(Compression.ZSTD, *batches) == (VALUES * 4, 1)
