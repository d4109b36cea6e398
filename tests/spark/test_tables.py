"""The rules of committing into a table: each batch once, whatever happens to the answers and whoever else commits."""

from __future__ import annotations

import logging

import attrs
import pytest

from kclient.errors import SinkError
from kclient.spark.sink import tables
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.tables import COMMIT_TRIES, LOAD_TRIES, QUERY, TableCommit, TableProgress
from kclient.types import TopicPartition
from tests.spark.memory_table import MemoryTable, PausedRuntime

TP, OTHER = TopicPartition("flights", 0), TopicPartition("flights", 1)


def batch(number: int, run: str = "run", rows: int = 10, **changed: object) -> TableCommit:
    """A batch of `rows` offsets, after others of the same size."""
    start = number * 10
    file = WrittenFile(
        path=f"{run}-{number}", topic="flights", partition=0, start=start, end=start + 10, rows=rows, bytes=1
    )
    commit = TableCommit(job="j", batch=number, start={TP: start}, end={TP: start + 10}, files=(file,))
    return attrs.evolve(commit, **changed)  # type: ignore[arg-type]


def commit(table: MemoryTable, wanted: TableCommit) -> bool:
    return tables.commit(table, wanted, PausedRuntime.seeded(1))


def paths(table: MemoryTable) -> list[str]:
    return [file.path for file in table.newest.files]


def test_batches_follow_each_other_and_the_table_says_where_the_job_stands() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    assert commit(table, batch(1))
    assert paths(table) == ["run-0", "run-1"]
    assert table.newest.jobs["j"] == TableProgress(batch=1, offsets={TP: 20}, first={TP: 0})


def test_a_batch_that_is_there_is_not_committed_again() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    assert not commit(table, batch(0, "again"))
    assert paths(table) == ["run-0"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_batch_of_another_query_is_refused_whatever_its_number(number: int) -> None:
    """With the number of the last batch it would be taken for this one, and its rows for landed."""
    table = MemoryTable()
    for own in (0, 1):
        assert commit(table, batch(own, topics={QUERY: 1}))
    other = batch(number, "other", start={}, end={}, topics={QUERY: 2})
    for refused in (tables.commit, tables.check):
        with pytest.raises(SinkError, match="Another query lands as the job j in memory"):
            refused(table, other, PausedRuntime.seeded(1))
    assert commit(table, batch(2, topics={QUERY: 1}))
    assert paths(table) == ["run-0", "run-1", "run-2"]


def test_a_job_whose_query_is_not_known_goes_on() -> None:
    table = MemoryTable()
    for number, topics in enumerate(({}, {QUERY: 1}, {})):
        assert commit(table, batch(number, topics=topics))
    assert table.newest.jobs["j"].topics == {QUERY: 1}


@pytest.mark.parametrize("fault", ["conflict", "lost", "refused", "late"])
@pytest.mark.parametrize("times", [1, 3])
def test_each_row_counts_once_whatever_happens_to_the_answer(fault: str, times: int) -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    table.faults = [fault] * times
    commit(table, batch(1))
    commit(table, batch(2))
    assert paths(table) == ["run-0", "run-1", "run-2"]


def test_an_answer_that_was_lost_is_looked_up_before_another_try(caplog: pytest.LogCaptureFixture) -> None:
    table = MemoryTable(faults=["lost", "lost"])
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert not commit(table, batch(0))
    assert (table.loads, table.faults) == (2, ["lost"])
    assert "no usable answer to the commit of batch 0 into memory (connection reset)" in caplog.text


def test_a_store_that_cannot_be_read_for_a_while_is_waited_for_with_growing_pauses() -> None:
    table, runtime = MemoryTable(failing_loads=3), PausedRuntime.seeded(1)
    assert tables.commit(table, batch(0), runtime)
    assert paths(table) == ["run-0"]
    assert runtime.pauses == sorted(runtime.pauses)
    assert 0.05 < runtime.pauses[0] < 0.2


@pytest.mark.parametrize(("fault", "reason"), [("conflict", "version 20 is newer"), ("refused", "500")])
def test_the_tries_end_and_say_why(fault: str, reason: str) -> None:
    table, runtime = MemoryTable(faults=[fault] * COMMIT_TRIES), PausedRuntime.seeded(1)
    with pytest.raises(SinkError, match=f"Batch 0 could not be committed into memory in 20 tries.*{reason}"):
        tables.commit(table, batch(0), runtime)
    assert (paths(table), table.faults) == ([], [])
    assert sum(runtime.pauses) < 200


def test_a_zombie_whose_batch_another_run_has_done_adds_nothing() -> None:
    table = MemoryTable()
    assert commit(table, batch(0, "successor"))
    assert not commit(table, batch(0, "zombie"))
    assert paths(table) == ["successor-0"]


@pytest.mark.parametrize(
    "zombie",
    [
        batch(0, "zombie"),
        batch(1, "zombie", end={TP: 15}),
        batch(1, "zombie", start={TP: 15}, end={TP: 25}),
        batch(2, "zombie", start={TP: 15}),
        batch(3, "zombie", start={TP: 20}),
        batch(4, "zombie", start={TP: 10}, end={TP: 20}),
    ],
    ids=[
        "long past",
        "another end",
        "another range",
        "another start",
        "a batch is missing",
        "another number",
    ],
)
def test_a_zombie_or_a_second_job_of_the_same_name_is_refused(zombie: TableCommit) -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    assert commit(table, batch(1))
    with pytest.raises(
        SinkError, match="Another run of the job j has gone on in memory: its batch 1 is there"
    ):
        commit(table, zombie)
    assert paths(table) == ["run-0", "run-1"]


def test_a_batch_that_ends_before_it_begins_is_refused() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    with pytest.raises(SinkError, match=r"Batch 1 of the job j would end before it begins \(flights-0\)"):
        commit(table, batch(1, end={TP: 5}))
    with pytest.raises(SinkError, match="would end before it begins"):
        commit(table, batch(1, start={}, end={TP: 5}))
    assert paths(table) == ["run-0"]
    assert table.newest.jobs["j"].offsets == {TP: 10}


@pytest.mark.parametrize(("hours", "counts"), [(0, True), (47, True), (49, False)])
def test_files_that_gc_may_have_removed_are_not_committed(*, hours: int, counts: bool) -> None:
    table, runtime = MemoryTable(), PausedRuntime.seeded(1)
    wanted = batch(0, began_ms=runtime.wall_ms() - hours * 3_600_000)
    if counts:
        assert tables.commit(table, wanted, runtime)
    else:
        with pytest.raises(SinkError, match="The files of batch 0 of the job j are 49 hours old"):
            tables.commit(table, wanted, runtime)
    assert bool(paths(table)) == counts
    assert tables.LONGEST_BATCH_MS < tables.GARBAGE_AGE_MS


def test_a_second_job_that_commits_between_reading_and_committing_wins() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    table.faults = [lambda: commit(table, batch(1, "other", end={TP: 17}))]
    with pytest.raises(SinkError, match="Another run of the job j has gone on"):
        commit(table, batch(1, "run"))
    assert paths(table) == ["run-0", "other-1"]


def test_jobs_of_other_names_have_their_own_progress() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    assert commit(table, batch(0, "other", job="k"))
    assert paths(table) == ["run-0", "other-0"]


def test_a_partition_that_appears_later_is_part_of_the_progress_and_one_that_is_gone_stays() -> None:
    table = MemoryTable()
    assert commit(table, batch(0))
    assert commit(table, batch(1, start={TP: 10, OTHER: 5}, end={TP: 20, OTHER: 9}))
    assert commit(table, batch(2, start={OTHER: 9}, end={OTHER: 12}))
    assert table.newest.jobs["j"] == TableProgress(
        batch=2, offsets={TP: 20, OTHER: 12}, first={TP: 0, OTHER: 5}
    )
    with pytest.raises(SinkError, match=r"does not follow on it \(flights-0\)"):
        commit(table, batch(3, start={TP: 0, OTHER: 12}, end={TP: 20, OTHER: 13}))


def test_a_table_that_was_replaced_under_the_run_is_refused() -> None:
    with pytest.raises(SinkError, match="memory knows nothing of the job j, whose batch 4 was to follow"):
        commit(MemoryTable(), batch(4))


def test_a_table_that_never_answers_is_reported() -> None:
    table = MemoryTable(failing_loads=LOAD_TRIES)
    with pytest.raises(SinkError, match=r"memory cannot be used: 503. .*did not answer 8 times"):
        tables.load_with_retries(table, PausedRuntime.seeded(1))
    assert tables.load_with_retries(table, PausedRuntime.seeded(1)).number == 0


def test_progress_keeps_everything_as_json() -> None:
    progress = TableProgress(batch=7, offsets={TP: 20, OTHER: 0}, first={TP: 3})
    assert TableProgress.parse(progress.dump()) == progress
    empty = TableProgress(batch=0, offsets={})
    assert TableProgress.parse(empty.dump()) == empty
    for wrong in ("", "[]", '{"batch": "1"}', '{"batch": 1, "offsets": {"t": {"0": -1}}}', "[" * 100_000):
        with pytest.raises(ValueError):  # noqa: PT011 each with a text of its own
            TableProgress.parse(wrong)


def test_the_default_name_of_a_job_is_that_of_its_cluster_topics_and_sink() -> None:
    name = tables.default_job("cluster", ["b", "a"], "iceberg:c.db.t")
    assert name == tables.default_job("cluster", ["a", "b"], "iceberg:c.db.t")
    others = [
        tables.default_job("other", ["a", "b"], "iceberg:c.db.t"),
        tables.default_job("cluster", ["a"], "iceberg:c.db.t"),
        tables.default_job("cluster", ["a", "b"], "iceberg:c.db.u"),
    ]
    assert len({name, *others}) == 4


# --- beside a job ----------------------------------------------------------------------------------------------------


def test_a_backfill_that_another_has_outrun_is_refused_by_its_commit() -> None:
    """Both have looked before: the commit looks again, in the version that it is for."""
    table = MemoryTable()
    first = batch(0, "first", job="j/backfill-1")
    table.faults = [lambda: commit(table, first)]
    with pytest.raises(
        SinkError, match=r"j/backfill-1 lands flights-0 from 0 to 10\. They would count twice"
    ):
        commit(table, batch(0, "second", job="j/backfill-2", start={TP: 5}, end={TP: 15}))
    assert paths(table) == ["first-0"]
    assert commit(table, batch(0, "third", job="j/backfill-3", start={TP: 10}, end={TP: 15}))


def test_a_backfill_ends_where_its_job_began_also_in_partitions_that_the_job_has_not_landed() -> None:
    table = MemoryTable()
    assert commit(table, batch(0, start={TP: 5}, end={TP: 10}))
    assert commit(table, batch(0, "before", job="j/backfill-1", start={TP: 0}, end={TP: 5}))
    for tp, start in ((TP, 50), (OTHER, 0)):
        with pytest.raises(SinkError, match=f"j lands {tp} from .* on"):
            commit(table, batch(0, "late", job="j/backfill-2", start={tp: start}, end={tp: start + 5}))
    assert commit(table, batch(0, "another job", job="k", start={TP: 0}, end={TP: 5}))
