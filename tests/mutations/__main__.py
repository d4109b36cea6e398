"""Break the code on purpose and see that the tests notice: `make mutations`, with `N=40` (drawn) or `ROW=S3-24`.

Each edit of `tests/mutations/edits` is applied in a copy of the tree; then the tests that are marked with its rows run.
Ends with 1 if an edit is not noticed or does not apply.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random

from tests.mutations.edit import Edit, load_edits
from tests.mutations.workspace import Outcome, Result, Workspace, index_rows


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every edit was noticed."""
    options = _options(arguments)
    edits = _chosen(list(load_edits()), options)
    if not edits:
        print("no edit is chosen", file=sys.stderr)
        return 2
    print(f"{len(edits)} edits on {options.jobs} processes", flush=True)
    counts: Counter[Outcome] = Counter()
    index = index_rows(collect=not options.collected)
    for result in _judge_all(edits, index, options.jobs):
        counts[result.outcome] += 1
        if result.outcome is not Outcome.NOTICED or not options.quiet:
            print(f"{sum(counts.values()):4}/{len(edits)} {result}", flush=True)
    print(", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome))
    return 0 if counts[Outcome.NOTICED] == len(edits) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutations", description=__doc__.split("\n\n")[0])
    parser.add_argument("--draw", type=int, metavar="N", help="as many, drawn")
    parser.add_argument("--seed", type=int, default=1, help="for the draw (1)")
    parser.add_argument(
        "--row", action="append", default=[], help="those of a row; may be given more than once"
    )
    parser.add_argument("--edit", action="append", default=[], metavar="NAME", help="one, such as fetcher:12")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (all cores)")
    parser.add_argument("--collected", action="store_true", help="take the tests that the last run collected")
    parser.add_argument("--quiet", action="store_true", help="only what was not noticed")
    return parser.parse_args(arguments)


def _chosen(edits: list[Edit], options: argparse.Namespace) -> list[Edit]:
    if options.row:
        edits = [edit for edit in edits if set(options.row) & set(edit.rows)]
    if options.edit:
        edits = [edit for edit in edits if edit.name in options.edit]
    if options.draw is not None and options.draw < len(edits):
        edits = Random(options.seed).sample(edits, options.draw)
    return edits


def _judge_all(edits: list[Edit], index: dict[str, list[str]], jobs: int) -> Iterator[Result]:
    """Results as they come. Each job has a copy of the tree of its own."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(jobs) as pool:
        free: SimpleQueue[Workspace] = SimpleQueue()
        for number in range(jobs):
            free.put(Workspace(Path(folder, str(number))))

        def judge(edit: Edit) -> Result:
            workspace = free.get()
            try:
                return workspace.judge(edit, index)
            finally:
                free.put(workspace)

        yield from pool.map(judge, edits)


if __name__ == "__main__":
    sys.exit(main())
