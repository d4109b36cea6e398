"""Print which rows of the behaviour specification have a passing test, from the results of one test run.

`make spec` calls it. A row counts as proved when a test that names it passed and none that names it failed.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.spec_plugin import known_rows

Outcomes = Mapping[str, Mapping[str, str]]  # row → test → passed, failed or skipped


def verdict(outcomes: Mapping[str, str]) -> str:
    """One word for a row: `proved`, `failing`, or `unproved` where no test of it ran to a pass."""
    if "failed" in outcomes.values():
        return "failing"
    return "proved" if "passed" in outcomes.values() else "unproved"


def ranges(rows: Iterable[str]) -> str:
    """Row ids folded into ranges: S0-01…S0-03, S0-07."""
    folded: list[list[str]] = []
    for row in rows:
        if folded and _number(row) == _number(folded[-1][-1]) + 1:
            folded[-1].append(row)
        else:
            folded.append([row])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}…{run[-1]}" for run in folded)


def _number(row: str) -> int:
    return int(row.rpartition("-")[2])


def report(outcomes: Outcomes) -> Iterable[str]:
    """The lines to print: each group of rows, then the other ids that tests name."""
    known = known_rows()
    for group, members in itertools.groupby(known, key=known.__getitem__):
        rows = list(members)
        by_verdict = {word: [r for r in rows if verdict(outcomes.get(r, {})) == word] for word in VERDICTS}
        yield f"{group}: {len(by_verdict['proved'])} of {len(rows)} have a passing test"
        if by_verdict["failing"]:
            yield f"    failing: {ranges(by_verdict['failing'])}"
        if by_verdict["unproved"]:
            yield f"    none:    {ranges(by_verdict['unproved'])}"
    others = sorted(row for row in outcomes if row not in known)
    for prefix, ids in itertools.groupby(others, key=lambda row: row[: 2 if row[1] in ".-" else 1]):
        rows = list(ids)
        proved = [row for row in rows if verdict(outcomes[row]) == "proved"]
        yield f"{prefix}  other ids named by tests: {len(proved)} of {len(rows)} pass: {', '.join(proved)}"


VERDICTS = ("proved", "failing", "unproved")


def main(arguments: list[str]) -> int:
    """Print the report of the results file named on the command line."""
    run = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    print(f"Results of {' '.join(run['command'])}")
    print(f"run at {run['at']} on {run['commit']}\n")
    for line in report(run["rows"]):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
