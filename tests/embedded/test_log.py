"""The log as an object: offsets, epochs, what is cut off at either end."""

from __future__ import annotations

import pytest

from kclient.embedded.log import LeaderEpochs, Log
from tests.embedded.one_topic import NOW, batch


def log_of(*sizes: int, epoch: int = 0) -> Log:
    """A log with a batch of each size, a second after the other."""
    log = Log()
    for number, size in enumerate(sizes):
        log.append(batch(*[b"v"] * size, timestamp=NOW + 1000 * number), epoch)
    return log


def bases(log: Log) -> list[int]:
    return [stored.base_offset for stored in log.batches]


def test_batches_get_their_offsets_and_epoch() -> None:
    log = log_of(3, 1, 2, epoch=4)
    assert (log.start, log.end, bases(log)) == (0, 6, [0, 3, 4])
    header = log.batches[2].header
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (4, 5, 4)
    header.check_crc()


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (2, 0), (3, 3), (5, 4), (6, None)])
def test_a_read_begins_with_the_batch_that_holds_the_offset(offset: int, first: int | None) -> None:
    found = log_of(3, 1, 2).read(offset, 6, 1000)
    assert (found[0].base_offset if found else None) == first


def test_a_read_ends_below_its_bound_and_once_there_are_bytes_enough() -> None:
    log = log_of(1, 1, 1)
    size = len(log.batches[0].data)
    assert [len(log.read(0, below, 1000)) for below in (0, 1, 2, 3)] == [0, 1, 2, 3]
    assert [len(log.read(0, 3, limit)) for limit in (0, size, size + 1, 3 * size)] == [1, 1, 2, 3]


def test_what_is_cut_off_is_whole_batches_and_the_next_record_follows_the_cut() -> None:
    log = log_of(3, 3)
    log.truncate(4)
    assert (bases(log), log.end) == ([0], 4)
    assert log.append(batch(b"v"), 1).base_offset == 4
    assert log.epochs.entries == [(0, 0), (1, 4)]


def test_a_start_within_a_batch_keeps_the_batch() -> None:
    log = log_of(3, 3)
    log.advance_start(4)
    assert (log.start, bases(log)) == (4, [3])
    log.advance_start(2)
    assert log.start == 4
    log.advance_start(100)
    assert (log.start, log.end, bases(log)) == (6, 6, [])


@pytest.mark.spec("B.8")
def test_times_are_found_also_where_they_do_not_ascend_and_older_batches_are_gone() -> None:
    log = Log()
    for timestamp in (5, 1, 9, 3):
        log.append(batch(b"v", timestamp=timestamp), 0)
    assert [next(log.not_before(at)).base_offset for at in (0, 5, 6, 9)] == [0, 0, 2, 2]
    assert list(log.not_before(10)) == []
    log.advance_start(3)
    assert [stored.base_offset for stored in log.not_before(2)] == [3]
    assert log.latest is log.batches[0]


@pytest.mark.spec("B.9")
def test_an_epoch_ends_where_the_next_one_begins() -> None:
    epochs = LeaderEpochs()
    for epoch, first in ((1, 10), (3, 20), (4, 20), (6, 30)):
        epochs.begin(epoch, first)
    assert epochs.entries == [(1, 10), (4, 20), (6, 30)]  # 3 wrote nothing
    ends = {asked: epochs.end_of(asked, 40) for asked in (-1, 0, 1, 2, 3, 4, 5, 6, 7)}
    assert ends == {
        -1: (-1, -1),
        0: (0, 10),
        1: (1, 20),
        2: (1, 20),
        3: (1, 20),
        4: (4, 30),
        5: (4, 30),
        6: (6, 40),
        7: (-1, -1),
    }
    epochs.advance_start(25)
    assert epochs.entries == [(4, 25), (6, 30)]
    assert [epochs.at(offset) for offset in (24, 25, 30)] == [-1, 4, 6]
    epochs.truncate(30)
    assert epochs.entries == [(4, 25)]
