"""Which decoder reads records: native where it is built, unless KCLIENT_DECODER overrides. Both pass the core tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kclient
from kclient import Consumer
from kclient.errors import ConfigError
from kclient.records import decoder
from kclient.records.decoder import PYTHON_DECODER, decoder_in_use

ROOT = Path(__file__).parents[2]
NATIVE = "kclient.records.decoder_native"
SAMPLE = ("tests/records/test_records.py", "tests/records/test_golden.py", "tests/fetch/test_delivery.py")


@pytest.fixture(autouse=True)
def undecided() -> Iterator[None]:
    decoder._in_use.cache_clear()
    yield
    decoder._in_use.cache_clear()


@pytest.fixture
def built() -> None:
    pytest.importorskip("kclient.records._native", reason="the native decoder is not built")


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NATIVE, None)  # importing it raises ModuleNotFoundError


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("wanted", "reason"), [("", "it is built"), ("native", "KCLIENT_DECODER is native")])
def test_the_native_decoder_is_used_where_it_is_built(
    wanted: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCLIENT_DECODER", wanted)
    assert type(decoder_in_use()).__name__ == "NativeDecoder"
    assert (kclient.decoder().name, kclient.decoder().reason) == ("native", reason)


def test_the_python_decoder_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_DECODER", "python")
    assert decoder_in_use() is PYTHON_DECODER
    assert str(kclient.decoder()) == "python: KCLIENT_DECODER is python"


@pytest.mark.usefixtures("not_built")
def test_without_the_extension_records_are_decoded_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KCLIENT_DECODER", raising=False)
    assert decoder_in_use() is PYTHON_DECODER
    assert str(kclient.decoder()) == (
        "python: the native decoder is not built for this Python on this platform"
    )


@pytest.mark.usefixtures("not_built")
def test_the_native_decoder_that_is_asked_for_and_not_built_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KCLIENT_DECODER", "native")
    with pytest.raises(ConfigError, match="KCLIENT_DECODER is native, but the native decoder is not built"):
        Consumer(bootstrap_servers="localhost:1")


def test_another_value_is_an_error_that_names_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_DECODER", "rust")
    with pytest.raises(ConfigError, match="python or native"):
        kclient.decoder()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", ["python", "native"])
def test_core_tests_pass_with_each_decoder(name: str) -> None:
    """A sample; the whole suite runs with the one that `kclient.decoder()` names."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SAMPLE],
        cwd=ROOT,
        env={**os.environ, "KCLIENT_DECODER": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
