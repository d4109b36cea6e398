"""Print which rows of the specification have a passing test, from the results of one test run.

`make spec` prints every group of rows, with a link to the paragraph of each row that has no passing test.
`make spec ROW=S3-31` prints the link of one row and how each of its tests ended.

A row is proved when a test that names it passed and none that names it failed.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.spec_plugin import Row, known_rows

Outcomes = Mapping[str, Mapping[str, str]]  # row → test → passed, failed or skipped


def verdict(outcomes: Mapping[str, str]) -> str:
    """Return `proved`, `failing`, or `no test` where no test of the row ran to a pass."""
    if "failed" in outcomes.values():
        return "failing"
    return "proved" if "passed" in outcomes.values() else "no test"


def report(outcomes: Outcomes) -> Iterator[str]:
    """Yield the lines to print: for each group a count, then each row that is not proved, with its link."""
    for group, members in itertools.groupby(known_rows().values(), key=lambda row: row.group):
        yield from report_group(group, list(members), outcomes)


def report_group(group: str, rows: list[Row], outcomes: Outcomes) -> Iterator[str]:
    """Yield the lines of one group."""
    verdicts = {row: verdict(outcomes.get(row.id, {})) for row in rows}
    proved = sum(word == "proved" for word in verdicts.values())
    yield f"{group}: {proved} of {len(rows)} have a passing test"
    for row, word in verdicts.items():
        if word != "proved":
            yield f"    {word:8} {row.id:8} {row.link}"


def report_row(row: str, outcomes: Outcomes) -> Iterable[str]:
    """Yield the link of one row, then each of its tests with its outcome."""
    if row not in known_rows():
        raise SystemExit(f"There is no row {row!r}: docs/specification has the rows.")
    yield f"{row}  {known_rows()[row].link}"
    for test, outcome in outcomes.get(row, {}).items():
        yield f"    {outcome:8} {test}"


def main(arguments: list[str]) -> int:
    """Print the report of the results file, or of the rows that follow it on the command line."""
    path, *rows = arguments
    run = json.loads(Path(path).read_text(encoding="utf-8"))
    print(f"Results of {' '.join(run['command'])}")
    print(f"run at {run['at']} on {run['commit']}\n")
    for line in (
        itertools.chain(*(report_row(row, run["rows"]) for row in rows)) if rows else report(run["rows"])
    ):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
