"""What the reader has typed to call us, so that every command that a text names can be typed again."""

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
