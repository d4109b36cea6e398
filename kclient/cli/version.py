"""`kclient version`: which versions work together here. An issue should quote it."""

from __future__ import annotations

import json as json_form
import platform
import sys
from importlib import metadata
from typing import Annotated, Final

from kclient.cli.options import flag

PACKAGES: Final = ("kclient-kafka", "pyspark", "pyarrow", "fastavro", "protobuf", "cramjam", "lz4", "crc32c")


def version(*, json: Annotated[bool, flag("one JSON object")] = False) -> int:
    """Print the versions of kclient, Python and the dependencies."""
    found = {name: installed(name) for name in PACKAGES}
    found["python"] = platform.python_version()
    if json:
        sys.stdout.write(json_form.dumps(found) + "\n")
        return 0
    for name, number in found.items():
        sys.stdout.write(f"{name:<14} {number or 'not installed'}\n")
    return 0


def installed(package: str) -> str | None:
    """Return the version of a distribution, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
