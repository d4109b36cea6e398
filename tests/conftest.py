"""What every test folder shares: the marker that names spec rows and its results, real Kafka clusters on demand."""

from __future__ import annotations

pytest_plugins = ["tests.spec_plugin", "tests.kafka.fixtures", "pytester"]
