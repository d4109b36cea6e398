"""What a worker does besides giving a range's records: columns, CRCs, connections, and how it says that it is stuck."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.control import leaders
from kclient.errors import CorruptDataError, DeadlineError
from kclient.records import arrow_binary
from kclient.records.columns import Columns
from kclient.records.compression import Compression
from kclient.records.decoder import is_native
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.writer import NewRecord, build_batch
from kclient.spark.arrow_batches import Batcher, default_columns
from kclient.spark.batch import plan_batch
from kclient.spark.decoding import ValueDecoder
from kclient.spark.executor import FetchedBatches, clients, read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, tolerated
from tests.realtime import within
from tests.spark.range_support import COMMITTED, Log, options_for

COLUMNS = default_columns(include_headers=False)
BROKERS = 3
BATCHES = 50


@pytest.fixture
def log() -> Iterator[Log]:
    with EmbeddedCluster(topics={"t": 1}) as kafka:
        yield Log(kafka)
        clients.close()


# --- columns


Read = Callable[[OffsetRange, EmbeddedCluster], Iterator[pa.RecordBatch]]


def by_a_batch(wanted: OffsetRange, kafka: EmbeddedCluster) -> Iterator[pa.RecordBatch]:
    source = pytest.importorskip("kclient.spark.source")
    return source.BatchReader(options_for(kafka), COLUMNS, ValueDecoder({})).read(
        source.RangePartition(wanted)
    )  # type: ignore[no-any-return]


def by_a_stream(wanted: OffsetRange, kafka: EmbeddedCluster) -> Iterator[pa.RecordBatch]:
    source = pytest.importorskip("kclient.spark.source")
    return source.StreamReader(options_for(kafka), COLUMNS, ValueDecoder({})).read(
        source.RangePartition(wanted)
    )  # type: ignore[no-any-return]


@pytest.mark.spec("SP-10")
@pytest.mark.parametrize("read", [by_a_batch, by_a_stream])
def test_what_spark_reads_is_an_iterator_that_does_nothing_before_it_is_asked(log: Log, read: Read) -> None:
    log.values(3_000, size=20)
    batches = read(OffsetRange("t", 0, 0, 3_000), log.kafka)
    assert isinstance(batches, Iterator)
    assert log.asked() == []
    assert isinstance(next(batches), pa.RecordBatch)
    assert sum(batch.num_rows for batch in batches) == 2_000


@pytest.mark.spec("SP-65")
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_columns_are_cut_out_of_the_bytes_without_an_object_for_each_record(
    monkeypatch: pytest.MonkeyPatch, codec: Compression
) -> None:
    def refused(columns: Columns) -> list[bytes | None]:
        raise AssertionError("a list of bytes objects was made")

    monkeypatch.setattr(Columns, "raw_keys", refused)
    monkeypatch.setattr(Columns, "raw_values", refused)
    written = [NewRecord(b"%04d" % n, b"x" * (n % 90), 1_000 + n) for n in range(900)]
    data = build_batch(written, compression=codec, base_offset=40)
    (batch,) = Batcher(COLUMNS, 10_000, 4_194_304).batches(PartitionReader("t", 7, data, 0), end=5_000)
    assert batch.column("value").to_pylist() == [one.value for one in written]
    assert batch.column("key").to_pylist() == [one.key for one in written]
    assert batch.column("offset").to_pylist() == list(range(40, 940))
    validity, offsets, values = batch.column("value").buffers()
    assert (validity, offsets.size // 4) == (None, len(written) + 1)
    assert pa.py_buffer(b"".join(one.value or b"" for one in written)).equals(
        values.slice(0, sum(n % 90 for n in range(900)))
    )


@pytest.mark.spec("SP-29", "SP-30")
def test_only_the_columns_that_were_asked_for_are_built(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes Arrow apart row by row and column by column: a column that is not wanted costs twice."""

    def refused(runs: object) -> pa.Array:
        raise AssertionError("bytes were touched that nobody asked for")

    def refused_names(names: tuple[str, ...]) -> object:
        return refused(names) if {"key", "value"} & {*names} else arrow_stream(names)

    log.values(300, size=50)
    monkeypatch.setattr(arrow_binary, "keys", refused)
    monkeypatch.setattr(arrow_binary, "values", refused)
    if is_native():
        from kclient.records.arrow_native import arrow_stream

        monkeypatch.setattr("kclient.records.arrow_native.arrow_stream", refused_names)
    wanted = OffsetRange("t", 0, 0, 300)
    (batch,) = read_range(wanted, options_for(log.kafka), ("offset", "partition"))
    assert batch.schema.names == ["offset", "partition"]
    assert batch.nbytes == 300 * (8 + 4)
    with pytest.raises(AssertionError, match="touched"):
        list(read_range(wanted, options_for(log.kafka), ("offset", "value")))


@pytest.mark.spec("ST-08", "SP-28")
def test_no_batch_has_a_column_of_more_bytes_than_its_offsets_can_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2 GiB take a while to fill: the same guard with a smaller limit."""
    assert arrow_binary.MOST_BYTES == 2**31 - 1
    monkeypatch.setattr(arrow_binary, "MOST_BYTES", 10_000)
    if is_native():
        monkeypatch.setattr("kclient.records.arrow_native.MOST_BYTES", 10_000)
    data = b"".join(
        build_batch(
            [NewRecord(b"k%03d" % n, b"x" * 900) for n in range(4)],
            base_offset=4 * number,
            compression=Compression.LZ4,  # bytes of its own: what lies in one Fetch has less than 2 GiB anyway
        )
        for number in range(12)
    )
    batches = list(Batcher(COLUMNS, 1_000, 4_194_304).batches(PartitionReader("t", 0, data, 0), end=48))
    assert len(batches) > 4
    assert all(len(batch.column("value").buffers()[2]) <= 10_000 for batch in batches)
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == list(range(48))


def test_a_range_that_ends_in_the_middle_of_a_batch_decodes_nothing_after_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: list[int] = []
    take = PartitionReader.take

    def noted(reader: PartitionReader, count: int, most_bytes: int) -> Chunk:
        wanted.append(count)
        return take(reader, count, most_bytes)

    monkeypatch.setattr(PartitionReader, "take", noted)
    data = build_batch([NewRecord(b"k", b"v")] * 5_000)
    (batch,) = Batcher(COLUMNS, 10_000, 4_194_304).batches(PartitionReader("t", 0, data, 0), end=700)
    assert (batch.num_rows, wanted) == (700, [65, 635])


# --- bytes that are not what was written


def flip_a_bit(log: Log) -> None:
    """Of the last record's value, on the broker's disk."""
    (stored,) = leaders.find(log.kafka.state, "t", 0).log.batches
    stored.data = stored.data[:-2] + bytes([stored.data[-2] ^ 1]) + stored.data[-1:]


@pytest.mark.spec("SP-67", "SP-66")
def test_a_damaged_batch_fails_with_its_coordinates_unless_checks_are_off(log: Log) -> None:
    log.values(20, size=40)
    flip_a_bit(log)
    wanted = OffsetRange("t", 0, 0, 20)
    with pytest.raises(CorruptDataError) as caught:
        list(read_range(wanted, options_for(log.kafka), COLUMNS))
    for word in ("t-0", "offset 0", "CRC"):
        assert word in str(caught.value)
    unchecked = options_for(log.kafka, kafka__check__crcs="false")
    (batch,) = read_range(wanted, unchecked, ("value",))
    assert batch.column("value").to_pylist() == [b"x" * 40] * 19 + [b"x" * 39 + b"y"]


@pytest.mark.spec("SP-67")
def test_old_formats_and_what_was_rolled_back_are_read_as_by_any_consumer(log: Log) -> None:
    log.transaction(7, 3, commit=False)
    log.transaction(7, 2, commit=True)
    (batch,) = read_range(OffsetRange("t", 0, 0, log.end), options_for(log.kafka, **COMMITTED), ("offset",))
    assert batch.column("offset").to_pylist() == log.visible == [4, 5]
    old = build_message(b"k", b"v")
    (batch,) = Batcher(COLUMNS, 100, 65_536).batches(PartitionReader("t", 0, old, 0), end=1)
    assert batch.select(["key", "value", "timestampType"]).to_pylist() == [
        {"key": b"k", "value": b"v", "timestampType": -1}
    ]


def build_message(key: bytes, value: bytes) -> bytes:
    """One of format 0, at offset 0: it knows no time."""
    blobs = b"".join(len(blob).to_bytes(4, "big") + blob for blob in (key, value))
    body = bytes([0, 0]) + blobs
    return bytes(8) + (len(body) + 4).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


# --- memory


def test_what_a_fetch_brought_is_not_shown_when_it_is_named() -> None:
    """asyncio makes a repr of each result on a main thread, and one of megabytes costs more than reading them."""
    assert len(repr(FetchedBatches(0, memoryview(bytes(1_000_000)), 5, ()))) < 100


# --- connections


@pytest.mark.spec("ST-18", "SP-16", "SP-60")
def test_fifty_batches_open_one_connection_to_each_broker_and_none_after_the_first() -> None:
    with EmbeddedCluster(brokers=BROKERS, topics={"t": BROKERS}) as kafka:
        for partition in range(BROKERS):
            kafka.produce("t", [b"%d" % n for n in range(BATCHES)], partition=partition)
        opened: list[int] = []
        for start in range(BATCHES):
            for partition in range(BROKERS):
                (batch,) = read_range(
                    OffsetRange("t", partition, start, start + 1), options_for(kafka), COLUMNS
                )
                assert batch.column("value").to_pylist() == [b"%d" % start]
            opened.append(kafka.state.connections)
        assert opened == [opened[0]] * BATCHES
        assert sum(len(broker.connections) for broker in kafka.state.brokers.values()) <= BROKERS
        assert len({one.node for one in kafka.requests if one.api == "Fetch"}) == BROKERS
        clients.close()


@pytest.mark.spec("SP-57", "SP-58")
@pytest.mark.parametrize("tolerant", ["false", "true"])
def test_a_worker_that_knows_less_than_the_plan_reports_no_loss(log: Log, tolerant: str) -> None:
    """It read the topic that was there before, and goes on with the one that was recreated."""
    options = options_for(log.kafka, failOnDataLoss=tolerant)
    before = sum(tolerated.values())
    read = []
    for count in (10, 3):
        log.kafka.produce("t", [b"x"] * count, partition=0)
        (wanted,) = asyncio.run(plan_batch(options))
        batches = read_range(wanted, options, ("offset",))
        read.append([offset for rows in batches for offset in rows[0].to_pylist()])
        log.kafka.recreate_topic("t")
    assert read == [[*range(10)], [*range(3)]]
    assert sum(tolerated.values()) == before


@pytest.mark.spec("ST-08", "SP-63")
def test_no_progress_is_reported_in_time_with_the_brokers_last_error(log: Log) -> None:
    log.values(5)
    options = options_for(log.kafka, kafkaConsumer__pollTimeoutMs="1500")
    assert sum(batch.num_rows for batch in read_range(OffsetRange("t", 0, 0, 2), options, COLUMNS)) == 2
    log.kafka.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=None)
    with within(2.5) as elapsed, pytest.raises(DeadlineError) as caught:
        list(read_range(OffsetRange("t", 0, 2, 5), options, COLUMNS))
    assert elapsed.seconds >= 0.5
    for word in ("t-0", "1.5 s", "offset 2", "ends at 5", "leader 1", "NOT_LEADER_OR_FOLLOWER"):
        assert word in str(caught.value)


@pytest.mark.spec("SP-60", "ST-18")
def test_batches_and_streams_share_connections_and_one_with_a_name_of_its_own_does_not(log: Log) -> None:
    log.values(3)
    servers = {"kafka.bootstrap.servers": log.kafka.bootstrap_servers, "subscribe": "t"}
    given = [
        SourceOptions.parse(servers, "batch"),
        SourceOptions.parse(servers, "stream"),
        SourceOptions.parse({**servers, "groupIdPrefix": "mine"}, "stream"),
        SourceOptions.parse({**servers, "kafka.isolation.level": "read_committed"}, "batch"),
    ]
    for options in given:
        assert sum(len(batch) for batch in read_range(OffsetRange("t", 0, 0, 3), options, COLUMNS)) == 3
    batch, stream, named, committed = (clients.borrow(options, "t") for options in given)
    assert batch is stream
    assert len({id(one) for one in (batch, named, committed)}) == 3
    assert {one.client_id for one in log.kafka.requests if one.api == "Fetch"} == {
        "spark-kafka-relation-executor",
        "mine-executor",
    }
