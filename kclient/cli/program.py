"""The program name as the user typed it, for the commands in help and error texts."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Final

SCRIPT: Final = "kclient"
MODULE: Final = "python -m kclient"


def program() -> str:
    """Return `kclient` if the installed script runs, `python -m kclient` otherwise."""
    called = PurePath(sys.argv[0]).stem if sys.argv else ""
    return SCRIPT if called == SCRIPT else MODULE
