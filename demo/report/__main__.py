"""`python -m demo.report RUN.json`: draw `report.html` beside a recording."""

from __future__ import annotations

import sys
from pathlib import Path

from demo.recording import Recording
from demo.report import write

if __name__ == "__main__":
    source = Path(sys.argv[1])
    write(Recording.load(source), source.with_name("report.html"))
