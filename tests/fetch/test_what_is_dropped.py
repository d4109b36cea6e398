"""What the log says of data that a poll drops because they are not those at the position (S2-53)."""

from __future__ import annotations

import logging

import pytest

from tests.fetch.fetch_support import P0, Shop, batch


@pytest.mark.spec("S2-53", "S2-40")
def test_debug_tells_where_dropped_data_begin_and_where_the_position_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "kclient.fetch")
    shop = Shop(P0)
    shop.arrive(P0, batch(0, 1))
    shop.arrive(P0, batch(5, 6), at=5)
    assert shop.offsets(2) == [(0, 0), (0, 1)]
    assert shop.poll() is None
    (line,) = [record for record in caplog.records if "Dropping" in record.getMessage()]
    assert line.levelno == logging.DEBUG
    assert line.getMessage() == f"Dropping the fetched data of {P0}: it begins at 5, the position is 2"
