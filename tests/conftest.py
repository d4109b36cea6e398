"""What every test folder shares: the marker that names spec rows and its results, real Kafka clusters on demand."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# The first test of a process that draws a text waits while Hypothesis reads the constants of all modules here: for
# seconds on a busy machine or after a change. That says nothing of the test, and neither does the time of an example.
settings.register_profile("kclient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kclient")

pytest_plugins = [
    "tests.parallel",
    "tests.spec_plugin",
    "tests.kafka.fixtures",
    "tests.s3",
    "tests.clouds",
    "pytester",
]


def pytest_configure() -> None:
    """Take SIGINT again where it is ignored, as in a background job of a shell.

    Children inherit that, and the interrupts that tests send to them, and to themselves, would do nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def kclient_modules() -> Iterator[dict[str, ModuleType]]:
    """Put these modules back into sys.modules after pytester has ended."""
    modules: dict[str, ModuleType] = {}
    yield modules
    sys.modules.update(modules)


@pytest.fixture
def pytester(kclient_modules: dict[str, ModuleType], pytester: pytest.Pytester) -> Iterator[pytest.Pytester]:
    """Keep the modules of kclient that the test imports first.

    pytester removes at its end what was first imported meanwhile. A later import would make a second class of a codec
    that the registry has loaded, and its rows would equal none of the first.
    """
    yield pytester
    kclient_modules |= {name: module for name, module in sys.modules.items() if name.startswith("kclient.")}
