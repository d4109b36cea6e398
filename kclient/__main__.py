"""`python -m kclient`."""

from __future__ import annotations

import sys

from kclient.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
