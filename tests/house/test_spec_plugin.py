"""The marker `spec` counts what passed, and refuses ids that cannot exist."""

from __future__ import annotations

import json

import pytest

from tools.spec import report, report_row

TESTS = """
    import pytest

    @pytest.mark.spec("S0-09", "D-20")
    def test_passes(): pass

    @pytest.mark.spec("S0-09", "S0-10")
    def test_fails(): raise ValueError

    @pytest.mark.spec("S0-11")
    def test_skips(): pytest.skip("here")

    @pytest.mark.spec("S0-12")
    @pytest.mark.spec("S0-13")
    @pytest.mark.parametrize("n", [1, 2])
    def test_passes_twice(n): pass
"""


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    pytester.makeini("[pytest]\nmarkers = spec(*ids): rows\n")
    return pytester.runpytest_inprocess("-p", "tests.spec_plugin", *arguments)


def test_the_results_file_says_how_each_test_of_a_row_ended(pytester: pytest.Pytester) -> None:
    run(pytester, TESTS, "--spec-results", "out/spec.json").assert_outcomes(passed=3, failed=1, skipped=1)
    written = json.loads((pytester.path / "out/spec.json").read_text(encoding="utf-8"))
    outcomes = {row: sorted(tests.values()) for row, tests in written["rows"].items()}
    assert outcomes == {
        "S0-09": ["failed", "passed"],
        "D-20": ["passed"],
        "S0-10": ["failed"],
        "S0-11": ["skipped"],
        "S0-12": ["passed", "passed"],
        "S0-13": ["passed", "passed"],
    }
    lines = list(report(written["rows"]))
    assert lines[0].endswith("2 of 63 have a passing test")
    assert lines[1] == "    no test  S0-01    docs/specification/positions.md#s0-01"
    assert "    failing  S0-09    docs/specification/positions.md#s0-09" in lines
    assert not any("S0-12" in line for line in lines)
    assert list(report_row("S0-10", written["rows"])) == [
        "S0-10  docs/specification/positions.md#s0-10",
        *(f"    {outcome:8} {test}" for test, outcome in written["rows"]["S0-10"].items()),
    ]


@pytest.mark.parametrize("row", ["S0-64", "S5-01", "S0-9", "Z-01"])
def test_an_id_that_does_not_exist_ends_the_run(pytester: pytest.Pytester, row: str) -> None:
    source = f"import pytest\n@pytest.mark.spec({row!r})\ndef test_it(): pass\n"
    result = run(pytester, source)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*there is no row '{row}'*"])


def test_a_row_whose_tests_are_all_exhaustive_ends_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.spec("S0-09", "S0-10")
        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
        def test_sampled(n): pass

        @pytest.mark.exhaustive
        @pytest.mark.spec("S0-10", "S0-11")
        def test_whole(): pass
        """
    )
    pytester.makeini("[pytest]\ntestpaths = .\nmarkers =\n    spec(*ids): rows\n    exhaustive: rest\n")
    result = pytester.runpytest_inprocess("-p", "tests.spec_plugin")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no row of *'S0-11'*"])
