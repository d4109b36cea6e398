"""The tests hold also where a shell runs them in the background, with SIGINT ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTERRUPTED = "tests/house/test_localkafka.py::test_a_signal_while_a_child_starts_leaves_no_process"


def test_tests_that_interrupt_themselves_pass_where_sigint_was_ignored() -> None:
    pytest_run = f"'{sys.executable}' -m pytest -q -p no:cacheprovider {INTERRUPTED}"
    done = subprocess.run(
        ["sh", "-c", f"trap '' INT; {pytest_run}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:]
