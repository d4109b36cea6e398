"""How long work stood still after a kill: until all records that waited have been processed."""

from __future__ import annotations

from demo.measures import Stall
from demo.recording import Recovery
from demo.run import machine


def test_work_continues_when_the_last_that_waited_has() -> None:
    stall = Stall("The member killed", 10.0, "why", {3, 4})
    assert stall.progressed([3, 4], 9.9) is None  # written before the kill, read after it
    assert stall.progressed([0, 3], 11.0) is None
    assert stall.progressed([4], 13.5) == Recovery("The member killed", 10.0, 3.5, "why")
    assert stall.progressed([4], 14.0) is None  # once


def test_a_commit_that_may_have_been_on_its_way_does_not_count() -> None:
    stall = Stall("The broker killed", 10.0, "why", {"A"}, {"A"})
    assert stall.progressed(["A"], 10.01) is None
    assert stall.progressed(["A"], 10.5) == Recovery("The broker killed", 10.0, 0.5, "why")


def test_a_member_that_is_killed_before_it_went_on_is_not_waited_for() -> None:
    late = Stall("The broker killed", 10.0, "why", {"A", "B"})
    assert late.without("B") is None
    assert late.progressed(["A"], 11.0) == Recovery("The broker killed", 10.0, 1.0, "why")
    early = Stall("The broker killed", 10.0, "why", {"A", "B"})
    assert early.progressed(["A"], 10.5) is None
    assert early.without("B") == Recovery("The broker killed", 10.0, 0.5, "why")
    assert early.without("B") is None


def test_the_machine_and_versions_are_known() -> None:
    found = machine("direct")
    assert "cores" in found["Machine"]
    assert "kclient-kafka" in found["Versions"]
    assert "pyspark" not in found["Versions"]
