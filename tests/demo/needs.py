"""What a test needs of its machine: without it, it is skipped, in CI it fails."""

from __future__ import annotations

import os

import pytest


def needs(reason: str | None) -> None:
    """Skip with this reason; None: there is nothing to complain of."""
    if reason:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
