"""Any message of any version survives a round trip; no bytes whatever make anything but the typed decode error.

`make test` draws 50 examples for each message and version, `make fuzz N=1000` as many as it is told.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kclient.errors import ProtocolDecodeError
from kclient.protocol import decode, encode
from tests.fuzz.strategies import messages, pairs

EXAMPLES = int(os.environ.get("KCLIENT_FUZZ_EXAMPLES", "50"))
PLACES = 200  # cuts tried in a message above 1 kB

pytestmark = pytest.mark.fuzz
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
    except ProtocolDecodeError as error:
        return error
    return None


@pytest.mark.spec("H-02", "H-03")
@pytest.mark.parametrize(("name", "version"), pairs())
def test_round_trip_and_every_cut(name: str, version: int) -> None:
    @seed(version)
    @fuzz
    @given(messages(name, version))
    def check(message: object) -> None:
        data = encode(message, version)
        decoded = decode(name, version, data)
        assert decoded == message
        assert encode(decoded, version) == data
        for size in cuts(len(data)):
            assert failure(name, version, data[:size]) is not None, f"cut to {size} of {len(data)} bytes"

    check()


@pytest.mark.spec("H-02", "H-03", "H-04", "H-05")
@pytest.mark.parametrize(("name", "version"), pairs())
def test_damaged_bytes(name: str, version: int) -> None:
    """Random bytes, and valid messages with a few bytes changed, decode or raise the typed error."""

    @seed(version)
    @fuzz
    @given(
        st.binary(max_size=200),
        messages(name, version),
        st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=3),
    )
    def check(noise: bytes, message: object, changes: list[tuple[int, int]]) -> None:
        damaged = bytearray(encode(message, version))
        for place, byte in changes:
            if damaged:
                damaged[place % len(damaged)] = byte
        for data in (noise, bytes(damaged)):
            error = failure(name, version, data)
            if error is not None:
                assert (error.message, error.version) == (name, version)
                assert 0 <= error.offset <= len(data)

    check()
