"""What every test folder shares: the marker that names spec rows and its results, real Kafka clusters on demand."""

from __future__ import annotations

import signal

pytest_plugins = ["tests.parallel", "tests.spec_plugin", "tests.kafka.fixtures", "pytester"]


def pytest_configure() -> None:
    """Take SIGINT again where it is ignored, as in a background job of a shell.

    Children inherit that, and the interrupts that tests send to them, and to themselves, would do nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
