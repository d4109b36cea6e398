"""`python -m kclient COMMAND`: commands for the terminal.

Data go to standard output, messages to standard error. The exit code names the kind of failure, the same for every
command (`exit_codes.py`), and its text contains the next step. Output has no colour, and moves only on a terminal.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Final

SCRIPT: Final = "kclient"
MODULE: Final = "python -m kclient"


def program() -> str:
    """Return the program name as the user typed it, for help and error texts: `kclient` or `python -m kclient`."""
    called = PurePath(sys.argv[0]).stem if sys.argv else ""
    return SCRIPT if called == SCRIPT else MODULE
