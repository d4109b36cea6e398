"""`import kclient` is cheap: it imports no optional dependency, and no codec before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import metadata

import kclient

LIMIT_SECONDS = 0.150
ROUNDS = 7

LOADED = """
import json, sys
import kclient
print(json.dumps(sorted(sys.modules)))
"""
NOT_AT_IMPORT = {"pyarrow", "pyspark", "jinja2", "numpy", "pandas", "rich", "http.client", "urllib.request"}
NOT_AT_IMPORT |= {"importlib.metadata"}


def seconds(code: str) -> float:
    """Wall time of a fresh interpreter that runs one line."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def test_importing_kclient_takes_150_ms_at_most() -> None:
    seconds("import kclient")  # writes the bytecode caches
    rounds = [(seconds("import kclient"), seconds("pass")) for _ in range(ROUNDS)]
    # The best of each: a busy machine can only add time.
    cost = min(with_import for with_import, _ in rounds) - min(bare for _, bare in rounds)
    assert cost <= LIMIT_SECONDS, rounds


def test_importing_kclient_loads_no_codec_and_no_extra() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert not loaded & NOT_AT_IMPORT
    codecs = [name for name in loaded if name.startswith("kclient.generated.")]
    assert not [name for name in codecs if name.endswith(("_request", "_response"))]


def test_the_version_is_that_of_the_installed_package() -> None:
    assert kclient.__version__ == metadata.version("kclient-kafka")
