"""The published bugs of Apache Iceberg's Kafka Connect sink as plans: what happened there, happens to a job here.

#16282   the coordinator dies between its commit and the note of it: its successor commits the same files again
#17637   two coordinators after a rebalance, each with its own clock
#13763   files named by two snapshots: tasks that should be gone go on, 4.6 million rows counted twice
#13752   rows dropped while the catalog fails: the commit is given up, the offsets go on
#17340   the mark of what is committed goes back when the control topic is read again
#17551   a coordinator of before writes its old offsets; retention deletes what they name, and the rest is skipped
"""

from __future__ import annotations

from typing import Final

from tests.lakehouse.plan import Fault, Plan

PLANS: Final = {
    "#16282": Plan(
        faults=tuple(Fault("commit_fails", 10.0 + 20.0 * number, what=("dies",)) for number in range(9))
    ),
    "#17637": Plan(
        faults=(
            Fault("second_run", 15.0, 40.0),
            *(Fault("second_checkpoint", 40.0 + 20.0 * number, 30.0) for number in range(6)),
            Fault("second_run", 180.0, 40.0),
            Fault("commit_fails", 190.0, what=("slow", "slow")),
        )
    ),
    "#13763": Plan(
        faults=tuple(Fault("replace", 10.0 + 30.0 * number, 20.0 + 5.0 * number) for number in range(6))
    ),
    "#13752": Plan(
        chaos_seconds=1_500.0,
        records_per_second=2.0,
        faults=(
            Fault("catalog_down", 20.0, 1_200.0),
            Fault("commit_fails", 1_250.0, what=("refused", "lost", "refused")),
        ),
    ),
    "#17340": Plan(
        faults=tuple(
            Fault(kind, 15.0 + 25.0 * number)
            for number, kind in enumerate(("old_checkpoint", "kill", "old_checkpoint", "lose_checkpoint") * 2)
        )
    ),
    "#17551": Plan(
        faults=(
            Fault("replace", 20.0, 100.0),
            Fault("retention", 60.0),
            Fault("replace", 90.0, 60.0),
            Fault("retention", 110.0),
            Fault("old_checkpoint", 125.0),
            Fault("retention", 170.0),
            Fault("old_checkpoint", 180.0),
        )
    ),
    "unanswered": Plan(
        faults=tuple(
            Fault("commit_fails", 10.0 + 20.0 * number, what=("lost", "late")) for number in range(9)
        )
    ),
    "restored": Plan(
        faults=tuple(
            fault
            for start in (15.0, 60.0, 105.0, 150.0)
            for fault in (
                Fault("replace", start, 12.0),
                Fault("lose_checkpoint", start + 0.5),  # and with it the epoch that fences
                Fault("restore", start + 1.0, count=3),
            )
        )
    ),
    "manifests": Plan(
        sink="manifests",
        faults=(
            *(Fault("second_run", 10.0 + 25.0 * number, 20.0) for number in range(8)),
            *(Fault("replace", 20.0 + 50.0 * number, 12.0) for number in range(4)),
            Fault("store_fails", 100.0, 40.0),
        ),
    ),
    "slept": Plan(chaos_seconds=60.0, records_per_second=0.5, faults=(Fault("sleep", 30.0, 80 * 3_600.0),)),
    "recreated": Plan(records_per_second=30.0, faults=(Fault("recreate", 8.0),)),
    "recreated unseen": Plan(
        records_per_second=30.0,
        faults=(Fault("replace", 20.0, 10.0), Fault("lose_checkpoint", 21.0), Fault("recreate", 22.0)),
    ),
}
"""Issue of apache/iceberg → plan; and plans of our own for what few seeds bring about."""
