"""Any message of any version survives a round trip; no bytes whatever make anything but the typed decode error.

`make test` draws 25 examples for each message and version, `make verify` 500, `make fuzz N=1000` as many as N says.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kclient.errors import ProtocolDecodeError
from kclient.protocol import decode, encode
from tests.fuzz.strategies import messages, pairs

EXAMPLES = int(os.environ.get("KCLIENT_FUZZ_EXAMPLES", "25"))
PLACES = 200  # cuts tried in a message above 1 kB
CHANGES = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=3)  # place, new byte

pytestmark = [pytest.mark.fuzz, pytest.mark.spread]
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def cuts(size: int) -> range:
    """Where a message is cut: everywhere, or at 200 places when it is above 1 kB."""
    return range(size) if size <= 1024 else range(0, size, -(-size // PLACES))


def failure(name: str, version: int, data: bytes) -> ProtocolDecodeError | None:
    """The typed error of decoding, None where the bytes are a message; whatever else is raised escapes."""
    try:
        decode(name, version, data)
    except ProtocolDecodeError as exc:
        return exc
    return None


def assert_every_cut_is_refused(name: str, version: int, data: bytes) -> None:
    for size in cuts(len(data)):
        assert failure(name, version, data[:size]) is not None, f"cut to {size} of {len(data)} bytes"


def assert_errors_say_where(name: str, version: int, data: bytes) -> None:
    """Bytes that may be anything decode, or raise the typed error about a place within them."""
    error = failure(name, version, data)
    if error is not None:
        assert (error.message, error.version) == (name, version)
        assert 0 <= error.offset <= len(data)


@pytest.mark.spec("H-02", "H-03", "H-04", "H-05")
@pytest.mark.parametrize(("name", "version"), pairs())
def test_round_trip_every_cut_and_damaged_bytes(name: str, version: int) -> None:
    """One message drawn serves all three: drawing it takes longer than what is done with it."""

    @seed(version)
    @fuzz
    @given(messages(name, version), st.binary(max_size=200), CHANGES)
    def check(message: object, noise: bytes, changes: list[tuple[int, int]]) -> None:
        data = encode(message, version)
        decoded = decode(name, version, data)
        assert decoded == message
        assert encode(decoded, version) == data
        assert_every_cut_is_refused(name, version, data)
        damaged = bytearray(data)
        for place, byte in changes if data else ():
            damaged[place % len(damaged)] = byte
        assert_errors_say_where(name, version, bytes(damaged))
        assert_errors_say_where(name, version, noise)

    check()
