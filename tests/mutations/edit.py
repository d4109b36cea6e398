"""One edit: in which file, what is replaced by what, and the rows that it breaks: each must have a test that fails.

The edits are data, in `edits/*.toml`:

    [[edit]]
    rows = ["S3-24"]
    file = "kclient/group/classic/rebalance.py"
    old = "self._generation = joined.generation"
    new = "pass"

`old` stands exactly once in the file. A long one goes into a literal string of several lines: its first line break is
not part of it. `tests = ["tests/kafka/test_x.py"]` names test files that run in addition, where the rows are proved by
tests that a plain run leaves out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[2]
EDITS: Final = Path(__file__).parent / "edits"


class EditError(Exception):
    """An edit that cannot be applied: it does not fit the code any more, or never did."""


@attrs.frozen
class Edit:
    """An edit, and where it is written down."""

    name: str  # file of edits and number: "fetcher:12"
    rows: tuple[str, ...]
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()

    def apply(self, source: str) -> str:
        """Return the broken source. Raise EditError where `old` is not in it, or not once, or nothing changes."""
        found = source.count(self.old)
        if found != 1:
            raise EditError(
                f"{self.name}: `old` stands {found} times in {self.file}, and must stand there once"
            )
        broken = source.replace(self.old, self.new)
        if broken == source:
            raise EditError(f"{self.name}: `new` is `old`")
        try:
            compile(broken, self.file, "exec")
        except SyntaxError as exc:
            raise EditError(f"{self.name}: {self.file} does not compile any more: {exc}") from exc
        return broken


def load_edits(folder: Path = EDITS) -> Iterator[Edit]:
    """Every edit that is written down. Raise EditError for one that lacks something or says too much."""
    for path in sorted(folder.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for number, fields in enumerate(content["edit"], 1):
            name = f"{path.stem}:{number}"
            if unknown := set(fields) - {"rows", "file", "old", "new", "tests"}:
                raise EditError(f"{name}: unknown keys {sorted(unknown)}")
            try:
                yield Edit(
                    name,
                    tuple(fields["rows"]),
                    fields["file"],
                    fields["old"],
                    fields["new"],
                    tuple(fields.get("tests", ())),
                )
            except KeyError as exc:
                raise EditError(f"{name}: {exc} is missing") from exc
