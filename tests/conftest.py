"""What every test folder shares: the marker that names rows of the behaviour pages, and its results."""

from __future__ import annotations

pytest_plugins = ["tests.spec_plugin", "pytester"]
