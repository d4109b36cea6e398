"""A process that ends the children of a starter that died. It runs as a script and uses only the standard library.

It reads lines from its standard input: `+PID` and `-PID` add and remove a process group, `rm PATH` names a folder.
When the input ends, because the starter closed it or died, however it died, the reaper kills every group still on
its list and removes the folders.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Follow the starter's lines until they end, then clean up."""
    groups: dict[int, None] = {}
    folders: list[str] = []
    for line in sys.stdin:
        word = line.rstrip("\n")
        if word.startswith("+"):
            groups[int(word[1:])] = None
        elif word.startswith("-"):
            groups.pop(int(word[1:]), None)
        elif word.startswith("rm "):
            folders.append(word[3:])
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
