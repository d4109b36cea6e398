"""The environment of a run: the machine and the versions."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

from demo.job import SPARK


def machine(engine: str) -> dict[str, str]:
    """Return the properties of the machine that matter when runs are compared."""
    names = ("kclient-kafka", "pyarrow", *(("pyspark",) if engine == SPARK else ()))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return {
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}{platform.system()} {platform.machine()}",
        "Versions": f"Python {platform.python_version()}, {versions}",
    }


def _processor() -> str:
    found = re.search(r"model name\s*: (.+)", _text("/proc/cpuinfo"))
    return found[1] if found else platform.processor() or "unknown processor"


def _memory() -> str:
    found = re.search(r"MemTotal:\s+(\d+) kB", _text("/proc/meminfo"))
    return f"{int(found[1]) / 1e6:.0f} GB, " if found else ""


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
