"""`python -m codegen` rewrites the generated modules; `--check` compares, and exits 1 naming what differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from codegen.errors import SchemaError
from codegen.output import differences, generate, write

_ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="compare instead of writing; exit 1 on a difference"
    )
    parser.add_argument("--schemas", type=Path, default=_ROOT / "schemas", help="folder of the schemas")
    parser.add_argument(
        "--output", type=Path, default=_ROOT / "generated", help="folder of the generated modules"
    )
    options = parser.parse_args(arguments)
    try:
        files = generate(options.schemas)
    except SchemaError as exc:
        print(exc, file=sys.stderr)
        return 1
    if not options.check:
        print(f"{len(files)} modules, {write(files, options.output)} changed")
        return 0
    found = differences(files, options.output)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print("run `make codegen` and commit what it writes", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
