"""The pieces of a range, wherever it is cut, are the range."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.embedded import EmbeddedCluster, NewRecord
from kclient.records.compression import Compression
from kclient.spark.executor import clients
from kclient.spark.ranges import OffsetRange, split
from tests.spark.range_support import COMMITTED, Log

_names = iter(range(10**9))


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


RECORDS = st.builds(
    NewRecord,
    key=st.none() | st.binary(max_size=3),
    value=st.none() | st.binary(max_size=80),
    timestamp=st.sampled_from([-1, 0, 1_700_000_000_000]),
    headers=st.sampled_from([(), (("h", None),)]),
    offset=st.none(),
)
STEPS = st.one_of(
    st.tuples(
        st.just("batch"), st.lists(RECORDS, min_size=1, max_size=40), st.sampled_from(list(Compression))
    ),
    st.tuples(st.just("shape"), st.integers(1, 60), st.integers(0, 90)),
    st.tuples(st.sampled_from(["commit", "abort"]), st.integers(1, 5), st.integers(1, 3)),
    st.tuples(st.just("marker"), st.integers(1, 3), st.booleans()),
)


def write(log: Log, step: tuple[object, ...]) -> None:
    match step:
        case ("batch", [*records], Compression() as codec):
            log.batch(*records, compression=codec)
        case ("shape", int(count), int(size)):
            log.values(count, size)
        case ("marker", int(producer), bool(commit)):
            log.marker(producer, commit=commit)
        case (kind, int(count), int(producer)):
            log.transaction(producer, count, commit=kind == "commit")


@pytest.mark.spec("SP-55", "SP-62", "ST-07", "I-21")
@settings(deadline=None, max_examples=25)
@given(steps=st.lists(STEPS, min_size=1, max_size=8), drawn=st.data())
def test_the_pieces_of_any_split_are_the_whole_range(
    kafka: EmbeddedCluster, steps: list[tuple[object, ...]], drawn: st.DataObject
) -> None:
    name = f"t{next(_names)}"
    kafka.create_topic(name, partitions=1)
    log = Log(kafka, name)
    for step in steps:
        write(log, step)
    log.remove(*drawn.draw(st.lists(st.integers(0, log.end - 1), max_size=log.end // 2), label="cleaned"))
    small = {
        "kafka__max__partition__fetch__bytes": drawn.draw(st.sampled_from(["1", "2000", "1048576"])),
        "kafkaConsumer__pollTimeoutMs": "5000",
    }
    whole = log.read(**small, **COMMITTED)
    assert [row["offset"] for row in whole] == log.visible
    cuts = sorted(drawn.draw(st.lists(st.integers(0, log.end), max_size=4), label="cuts"))
    borders = zip([0, *cuts], [*cuts, log.end], strict=True)
    assert [row for start, end in borders for row in log.read(start, end, **small, **COMMITTED)] == whole
    pieces = split([OffsetRange(name, 0, 0, log.end)], drawn.draw(st.integers(1, 7), label="minPartitions"))
    assert [row for one in pieces for row in log.read(one.start, one.end, **small, **COMMITTED)] == whole


@pytest.fixture(autouse=True, scope="module")
def _close() -> Iterator[None]:
    yield
    clients.close()
