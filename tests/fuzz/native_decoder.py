"""The native decoder under AddressSanitizer and UndefinedBehaviorSanitizer, against the Python one.

    python -m tests.fuzz.native_decoder [--sections N] [--seed S]        as `make native-fuzz N=…` calls it

native/ is compiled with both sanitizers into a temporary folder, and a child process runs with their library loaded
first. There, sections of records are written, each is damaged in a few places in DAMAGED ways, and decoded by both
decoders: the same columns, or the same error with the same text. One of EXPORTED is used further: record objects are
made of the columns in both ways; the columns are exported as an Arrow stream, which is read and compared, or dropped at
some point before; then again with wrong numbers in them, which is a stream or a ValueError. After every FIELDS sections
a field of several batches is compared (`fields`). PYTHONMALLOC=malloc gives
each object its own place on the heap, so that a read past its end is noticed, and so is memory that is released twice.
The first difference or report ends the run, with the seed and the number of the section, which repeat it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import machinery, util
from pathlib import Path
from typing import Any, Final

import attrs

from kclient.errors import CorruptBatchError, CorruptDataError
from kclient.records.columns import Columns
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.reader import Chunk
from kclient.records.records import Record
from kclient.records.varint import encode_signed
from kclient.types import TimestampType, TopicPartition
from tests.fuzz.fields import Fields, compare_field
from tests.records.arrow_capsules import batches_of, expected, moved, read, release, stream_of

ROOT: Final = Path(__file__).parents[2]
SOURCES = ROOT / "native"
SANITIZE: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
LEND_SMALL: Final = "-DLARGE_BYTES=8"
"""Exported streams refer to the data where a section has one record with a value of most of its bytes."""
ASAN_OPTIONS: Final = "detect_leaks=0"  # the interpreter itself keeps memory at its end
EXTENSION: Final = "KCLIENT_SANITIZED"
DAMAGED: Final = (
    20  # ways in which each written section is damaged; writing one costs as much as comparing four
)
EXPORTED: Final = (
    19  # one of so many is used further, which costs as much as comparing ten; shares no factor with DAMAGED
)
FIELDS: Final = 20
PROGRESS: Final = 1_000_000  # sections
PARTITION: Final = TopicPartition("t", 3)
EDGES: Final = (0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF)
TIMES: Final = (0, 1, -1, 63, 64, 8191, 8192, 2**31, -(2**40), 2**63 - 1, -(2**63))


class NoSanitizerError(Exception):
    """This machine cannot compile with the sanitizers. The text says why."""


# --- the sanitized extension


def build(folder: Path) -> Path:
    """Compile native/ with the sanitizers; the path of the extension. Raise NoSanitizerError."""
    compiler = shutil.which("gcc")
    headers = sysconfig.get_path("include")
    if compiler is None or not Path(headers, "Python.h").exists():
        raise NoSanitizerError("there is no gcc, or no Python.h")
    target = folder / "_native.so"
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    command = [
        compiler,
        "-g",
        "-O1",
        "-shared",
        "-fPIC",
        *SANITIZE,
        LEND_SMALL,
        f"-I{headers}",
        *sources,
        "-o",
        str(target),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoSanitizerError(f"gcc cannot compile with the sanitizers: {done.stderr.strip()[-200:]}")
    return target


def environment(extension: Path) -> dict[str, str]:
    """What the child needs: the library of AddressSanitizer before all others, and where the extension is."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return os.environ | {
        "LD_PRELOAD": found.stdout.strip(),
        "ASAN_OPTIONS": ASAN_OPTIONS,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        EXTENSION: str(extension),
    }


def run_sanitized(sections: int, seed: int, *, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Build, and run the child to its end. Return what it printed, if that is captured."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.native_decoder",
            "--sections",
            str(sections),
            "--seed",
            str(seed),
        ]
        return subprocess.run(
            command,
            cwd=ROOT,
            env=environment(build(Path(folder))),
            capture_output=capture,
            text=True,
            check=False,
        )


def sanitized_decoder() -> Decoder:
    """The native decoder on top of the extension that the environment names."""
    name = "kclient.records._native"
    loader = machinery.ExtensionFileLoader(name, os.environ[EXTENSION])
    spec = util.spec_from_file_location(name, os.environ[EXTENSION], loader=loader)
    assert spec is not None
    module = util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = module  # before decoder_native imports it
    from kclient.records import decoder_native

    assert decoder_native.decode is module.decode
    return decoder_native.NativeDecoder()


# --- sections of records


def blob(content: bytes | None) -> bytes:
    return b"\x01" if content is None else encode_signed(len(content)) + content


@attrs.frozen
class Section:
    """What `decode` is given: the data, where the records begin, how many are asked for, and the limits."""

    data: bytes
    start: int
    count: int
    limits: dict[str, int]


class Sections:
    """Draws sections of records, and damages them."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def __iter__(self) -> Iterator[Section]:
        """Damaged sections without end."""
        while True:
            written = self._write()
            for _ in range(DAMAGED):
                yield self._damaged(written)

    def _write(self) -> Section:
        draw = self._draw
        delta = previous = draw.choice((-1, 0, 60, 8190, 2**30))
        parts = []
        for _ in range(draw.choice((1, 1, 2, 3, 5, 20))):
            delta += draw.choice((1, 1, 1, 2, 70))
            parts.append(self._record(delta))
        before = draw.randbytes(draw.randrange(3))
        data = before + b"".join(parts)
        limits = {
            "end": len(data) - draw.choice((0, 0, 0, 1, 5)),
            "base_offset": draw.choice((0, 10**12, 2**63 - 1 - delta)),
            "base_timestamp": draw.choice((-1, 0, 1_700_000_000_000, 2**63 - 1, -(2**63))),
            "previous_delta": previous,
            "last_delta": delta - draw.choice((0, 0, 0, 1)),
            "max_headers": draw.choice((1, 2, 1000, 1000, 1000, 1000)),
        }
        return Section(data, len(before), len(parts) + draw.choice((0, 0, 1)), limits)

    def _damaged(self, section: Section) -> Section:
        data = bytearray(section.data)
        for _ in range(self._draw.choice((1, 1, 1, 2))):
            self._damage(data)
        end = max(min(section.limits["end"], len(data)), section.start)
        return Section(bytes(data), section.start, section.count, section.limits | {"end": end})

    def _record(self, delta: int) -> bytes:
        draw = self._draw
        headers = draw.choice((0, 0, 0, 1, 2, 70))
        time = draw.choice(TIMES) if draw.random() < 0.1 else draw.randrange(-100, 5000)
        body = b"".join(
            (
                draw.randbytes(1),
                encode_signed(time),
                encode_signed(delta),
                blob(self._bytes()),
                blob(self._bytes()),
                encode_signed(headers),
                *(blob(draw.randbytes(draw.randrange(4))) + blob(self._bytes()) for _ in range(headers)),
            )
        )
        return encode_signed(len(body)) + body

    def _bytes(self) -> bytes | None:
        draw = self._draw
        size = draw.choice((None, 0, 1, 2, 5, 10, 63, 64, 130))
        return None if size is None else draw.randbytes(size)

    def _damage(self, data: bytearray) -> None:
        """Change a byte, mostly; else put in some, take out some, or cut the end off."""
        draw = self._draw
        kind, place = draw.random(), draw.randrange(len(data))
        if kind < 0.7:
            data[place] = draw.choice(EDGES) if draw.random() < 0.5 else draw.randrange(256)
        elif kind < 0.8:
            data[place:place] = bytes(draw.choice((0x80, 0xFF)) for _ in range(draw.randrange(1, 11)))
        elif kind < 0.9:
            del data[place : place + draw.randrange(1, 4)]
        else:
            del data[place:]
        data[:] = data or b"\0"


# --- both decoders


def outcome(decoder: Decoder, section: Section) -> tuple[Columns, Any]:
    """The columns, and where they end or why not: the error's class, text and attributes."""
    columns = decoder.columns_type(section.data, TimestampType.CREATE_TIME, 7)
    try:
        return columns, decoder.decode(columns, section.start, section.count, **section.limits)
    except CorruptBatchError as exc:
        return columns, (type(exc), exc.text, exc.__dict__)


def compare(native: Decoder, section: Section, *, further: bool) -> str:
    """Raise AssertionError where the decoders differ. Return how the section ended."""
    expected_columns, expected_end = outcome(PYTHON_DECODER, section)
    columns, end = outcome(native, section)
    assert end == expected_end
    for column, other in zip(columns.number_columns(), expected_columns.number_columns(), strict=True):
        assert list(column) == other
    if further:
        records: list[Record[Any, Any]] = list(expected_columns.rows(Record, PARTITION))
        assert list(columns.rows(Record, PARTITION)) == records
        compare_arrow(columns, records)
    return "sound" if isinstance(end, int) else end[0].__name__


# --- the Arrow stream


def export(columns: Columns, times: int) -> object:
    """The stream of the columns, so many times, each a run of a chunk."""
    from kclient.records import arrow_native  # after sanitized_decoder()

    return arrow_native.export([Chunk(PARTITION, 0, 7, [columns] * times)])


def compare_arrow(columns: Columns, records: list[Record[Any, Any]]) -> None:
    """Raise AssertionError where the rows of the stream differ. Then drop another one, and damage the columns."""
    times = 1 + len(columns.data) % 2
    rows = [expected(record) for record in records] * times
    if any(not -(2**63) <= row[5] < 2**63 for row in rows):
        return compare_refusal(columns)
    assert read(export(columns, times)) == rows
    drop_early(export(columns, times), len(columns.data) // 2 % 4)
    damage(columns)
    with contextlib.suppress(ValueError, CorruptDataError):
        read(export(columns, times))
    return None


def compare_refusal(columns: Columns) -> None:
    try:
        export(columns, 1)
    except CorruptDataError:
        return
    raise AssertionError("a timestamp beyond microseconds was exported")


def drop_early(capsule: object, how: int) -> None:
    """Release a stream that was not taken, not read, read in part, or whose batch loses a column first."""
    if how == 0:
        return
    with moved(stream_of(capsule)) as stream:
        for batch in batches_of(stream):
            if how == 2:
                with moved(batch.children[7].contents):
                    release(batch)
            else:
                release(batch)
            if how == 3:
                break


def damage(columns: Columns) -> None:
    """Change a number of each column that holds places in the data."""
    draw = random.Random(len(columns.data))
    for column in columns.number_columns()[2:]:
        if column:
            column[draw.randrange(len(column))] = draw.choice((-2, 0, 1, 7, 200, 2**31 - 1, -(2**31)))


def compare_sections(sections: int, seed: int) -> Counter[str]:
    """Compare so many sections; how they ended. Progress is written to stderr."""
    native, ends, fields = sanitized_decoder(), Counter[str](), iter(Fields(seed))
    for number, section in enumerate(itertools.islice(Sections(seed), sections)):
        try:
            ends[compare(native, section, further=number % EXPORTED == 0)] += 1
            if number % FIELDS == 0:
                ends[compare_field(native, next(fields))] += 1
        except Exception:
            print(f"section {number} of seed {seed}, or the field after it, differs: {section}", flush=True)
            raise
        if number % PROGRESS == PROGRESS - 1:
            print(f"{number + 1:,} sections", file=sys.stderr, flush=True)
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sections", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if EXTENSION in os.environ:
        ends = compare_sections(options.sections, options.seed)
        print(f"{options.sections:,} sections, no difference and no report: {dict(ends)}")
        return 0
    try:
        return run_sanitized(options.sections, options.seed).returncode
    except NoSanitizerError as exc:
        print(f"not run: {exc}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
