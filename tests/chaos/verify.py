"""The verdict over a cycle: every check over its history."""

from __future__ import annotations

from tests.chaos import check_callbacks, check_commits, check_ownership, check_records
from tests.chaos.findings import Finding
from tests.chaos.history import History

CHECKS = (*check_records.CHECKS, *check_commits.CHECKS, *check_ownership.CHECKS, *check_callbacks.CHECKS)


def verify(history: History) -> list[Finding]:
    """All findings, in the order of the checks."""
    return [finding for check in CHECKS for finding in check(history)]
