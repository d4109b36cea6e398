"""`within` does not count the time in which the process was not scheduled, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.realtime import within

STOPPED = """
import os, time
from tests.realtime import within
with within(0.8) as elapsed:
    print("begun", flush=True)
    time.sleep(0.4)
print(elapsed.seconds)
"""


def test_a_block_that_takes_too_long_fails() -> None:
    with pytest.raises(AssertionError, match=r"^\d\.\d+ s, of which"), within(0.1):
        time.sleep(0.9)  # a busy machine may pause the process meanwhile, which does not count


def test_time_in_which_the_process_was_stopped_does_not_count() -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        took = float(process.stdout.readline())
    assert process.returncode == 0
    assert took > 0.8
