"""A short run of the native decoder under the sanitizers; `make native-fuzz N=…` is a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import native_decoder
from tests.fuzz.native_decoder import NoSanitizerError, run_sanitized

pytestmark = pytest.mark.fuzz


def run(sections: int) -> str:
    """What a run prints; the test is skipped where nothing can be compiled with the sanitizers."""
    try:
        done = run_sanitized(sections, seed=1, capture=True)
    except NoSanitizerError as exc:
        pytest.skip(str(exc))
    return f"{done.returncode}: {done.stdout}{done.stderr}"


@pytest.mark.spec("H-12")
def test_damaged_sections_give_no_report_and_no_difference() -> None:
    assert run(2_000).startswith("0: 2,000 sections, no difference and no report")


def test_a_read_beyond_the_data_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself is tried, with a check that allows too much. One byte too far is the NUL of a bytes object."""
    (tmp_path / "native").mkdir()
    for path in (native_decoder.ROOT / "native").iterdir():
        text = path.read_text(encoding="ascii")
        text = text.replace("section->position >= section->size", "section->position > section->size + 1")
        (tmp_path / "native" / path.name).write_text(text, encoding="ascii")
    monkeypatch.setattr(native_decoder, "SOURCES", tmp_path / "native")
    found = run(2_000)
    assert "AddressSanitizer: heap-buffer-overflow" in found, found
