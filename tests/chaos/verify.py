"""The verdict over a cycle: every check over its history."""

from __future__ import annotations

from tests.chaos import called, committed, delivered, owned
from tests.chaos.findings import Finding
from tests.chaos.history import History

CHECKS = (*delivered.CHECKS, *committed.CHECKS, *owned.CHECKS, *called.CHECKS)


def verify(history: History) -> list[Finding]:
    """All findings, in the order of the checks."""
    return [finding for check in CHECKS for finding in check(history)]
