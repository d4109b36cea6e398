"""Look for seeds that notice the planted bugs: `python -m tests.simulation.mutants [M-01 …]`; 1 if one stays hidden."""

from __future__ import annotations

import os
import sys

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.hunt import hunt_all


def main(names: list[str]) -> int:
    """0 when each was noticed."""
    hidden = 0
    for caught in hunt_all(names or sorted(MUTANTS), os.cpu_count() or 1):
        print(caught, flush=True)
        hidden += caught.seed is None
    print(f"{len(names or MUTANTS) - hidden} of {len(names or MUTANTS)} planted bugs were noticed")
    return 1 if hidden else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
