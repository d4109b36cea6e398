"""The ledger is the truth only if it is right: at the end of a run it holds what the logs hold, record by record."""

from __future__ import annotations

import pytest

from kclient.embedded.log import records_of
from kclient.embedded.partition import Partition
from kclient.records.aborted import AbortedTransactions
from kclient.records.sections import MAX_DECOMPRESSED_BATCH_BYTES
from kclient.records.writer import NewRecord
from tests.simulation.ledger import ABORTED, OPEN, VISIBLE, Row
from tests.simulation.plan import Fault, Plan
from tests.simulation.runner import run_plan
from tests.simulation.scenario import Scenario
from tests.simulation.watch import Invariant

FAULTS = (
    Fault("truncate", "0", 10.0, 0.0, 0.9),
    Fault("compact", "1", 15.0, 0.0),
    Fault("truncate", "1", 20.0, 0.0, 0.5),
    Fault("expire", "2", 22.0, 0.0, 0.5),
    Fault("kill_broker", "1", 25.0, 5.0),
    Fault("truncate", "2", 33.0, 0.0, 0.9),
    Fault("recreate", "", 40.0, 0.0),
    Fault("truncate", "0", 50.0, 0.0, 0.5),
)


class Audit(Invariant):
    """Compares ledger and logs."""

    id = "I-02"
    states: tuple[str, ...] = ()

    def finished(self) -> None:
        for partition in self.stage.partitions():
            self._compare(partition)
        type(self).states = tuple(row.state for row in self.stage.ledger.all)

    def _compare(self, partition: Partition) -> None:
        rows = self.stage.ledger.rows.get(partition.tp, {})
        written = _in_the_log(partition)
        if sorted(rows) != sorted(written):
            self.broken(f"{partition.tp}: the ledger has {sorted(rows)}, the log {sorted(written)}")
            return
        wrong = [offset for offset, row in rows.items() if not _alike(row, *written[offset])]
        if wrong:
            self.broken(f"{partition.tp}: the ledger is wrong about {wrong[:5]}")
        if partition.last_stable_offset != partition.log.end:
            self.broken(f"{partition.tp}: a transaction was left open")


def _in_the_log(partition: Partition) -> dict[int, tuple[NewRecord, bool]]:
    """Every record of the log, and whether it was aborted."""
    aborted = AbortedTransactions(partition.log.producers.aborted)
    found: dict[int, tuple[NewRecord, bool]] = {}
    for stored in partition.log.batches:
        hidden = aborted.hides(stored.header, MAX_DECOMPRESSED_BATCH_BYTES)
        if not stored.header.is_control:
            for one in records_of(stored.header):
                if one.offset is not None and one.offset >= partition.log.start:
                    found[one.offset] = one, hidden
    return found


def _alike(row: Row, record: NewRecord, aborted: bool) -> bool:
    same = (row.key, row.value, row.headers) == (record.key, record.value, tuple(record.headers))
    return same and row.state == (ABORTED if aborted else VISIBLE)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("log_append_time", [False, True])
@pytest.mark.parametrize("transactions", [False, True])
def test_the_ledger_is_what_the_logs_are(transactions: bool, log_append_time: bool) -> None:
    scenario = Scenario(
        transactions=transactions, log_append_time=log_append_time, partitions=3, isolation="read_committed"
    )
    verdict = run_plan(5, Plan(scenario, FAULTS), more=(Audit,))
    assert verdict.passed, verdict.violations
    assert OPEN not in Audit.states
    assert (ABORTED in Audit.states) == transactions
