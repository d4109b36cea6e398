"""The page holds the numbers and the events, stands alone, and its pictures are where the figures say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import demo.report
from demo.recording import Batch, Count, Sample
from demo.report import render, write
from demo.report.figures import delays_until_landed, figures
from demo.report.geometry import Frame, axis_maximum, levels, segments_without_gap, ticks
from demo.report.pictures import delays, lag, lanes, throughput
from tests.demo.runs import a_run, numbers

VOID = {"meta", "link", "br", "img", "hr"}
CLOSED_BY_ITSELF = {"line", "path", "rect"}
REFERENCES = {"src", "href", "srcset", "action", "data", "poster", "xlink:href"}


class Page(HTMLParser):
    """Every element in order, its text, and whether each is closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in CLOSED_BY_ITSELF
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_holds_the_five_numbers_and_the_verdict() -> None:
    text = Page(render(a_run())).text
    assert "All five numbers agree." in text
    for name, value in (
        ("published", 600),
        ("consumed", 600),
        ("committed", 600),
        ("in Parquet", 600),
        ("lag", 0),
    ):
        assert f"{name} {value} " in text


@pytest.mark.parametrize("wrong", ["published", "consumed", "committed", "parquet", "lag"])
def test_a_wrong_number_is_shown_as_wrong(wrong: str) -> None:
    page = Page(render(a_run(numbers=numbers(**{wrong: 599}))))
    assert "agree" not in page.text
    assert "The numbers differ: 600 and lag 0 were right." in page.text
    assert "599 wrong" in page.text
    assert page.text.count(" wrong ") == 1
    assert [div for div in page.all("div") if div.get("class") == "wrong"] != []


def test_the_page_refers_to_nothing_outside_itself() -> None:
    html = render(a_run())
    page = Page(html)
    references = [
        value for _, attributes in page.tags for name, value in attributes.items() if name in REFERENCES
    ]
    assert references == ["data:,"]  # an empty icon, or a browser would ask for one
    assert "//" not in re.sub(r"data:,", "", html)
    assert not re.search(r"@import|url\(", html)
    assert {"script", "iframe", "img", "object"}.isdisjoint(tag for tag, _ in page.tags)


def test_every_picture_has_a_name_and_a_table() -> None:
    page = Page(render(a_run()))
    pictures = page.all("svg")
    assert len(pictures) == 1 + 2 * (1 + 2) + 1  # timeline; each group's lag and its partitions; batches
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)
    assert len(page.all("details")) == len(page.all("summary")) == 4
    assert len(page.all("caption")) == len(page.all("table")) == 7
    assert {"lang": "en"} in page.all("html")


def test_recovery_throughput_delay_machine_and_versions_are_reported() -> None:
    run = a_run()
    found = {figure.name: figure for figure in figures(run)}
    assert {name: figure.value for name, figure in found.items()} == {
        "The job killed": "6.5 s",  # killed at 11 s, the first batch of its second run ended at 17.5 s
        "The member killed": "3.4 s",
        "Consumed and committed": "86 records/s",  # 600 in 7 s
        "Landed in Parquet": "133 rows/s",  # 600 in 4.5 s
        "From publish to read": "4.2 ms",
        "From acknowledged to landed": "10.2 s",
        "Machine": "eight cores",
    }
    text = Page(render(run)).text
    assert "p99 610 ms, longest 1.9 s, of 240 records" in text
    for figure in found.values():
        assert f"{figure.name} {figure.value} {figure.meaning}".strip() in text
    assert "broker 3 killed; the work went on after 3.4 s" in text
    assert "the job killed; the work went on after 6.5 s" in text


def test_the_delay_until_a_row_landed_is_that_of_the_first_record_of_its_batch() -> None:
    published = [Count(1.0, 100), Count(2.0, 400), Count(3.0, 600)]
    batches = [Batch(1, 0, 2.0, 4.0, 400, 1, 1), Batch(1, 1, 4.0, 9.0, 200, 1, 1)]
    assert delays_until_landed(published, batches) == [3.0, 6.0]
    assert delays_until_landed([], batches) == []


def test_records_that_came_twice_are_explained() -> None:
    assert "a second time" not in Page(render(a_run())).text
    text = Page(render(a_run(repeated=1_000))).text
    assert "The members were handed 1,000 records a second time: a killed member has not committed" in text


def test_a_recording_of_before_has_fewer_figures(tmp_path: Path) -> None:
    run = a_run(published=[], recoveries=[], latency=None, machine={}, spans=[])
    assert [figure.name for figure in figures(run)] == ["Landed in Parquet"]


def test_a_colour_has_one_meaning_in_every_picture() -> None:
    """Two blues once meant starting and working in one picture, and member A and member B in the next."""
    css = (Path(demo.report.__file__).parent / "page.css").read_text()
    meanings = dict(re.findall(r"\.([\w-]+)(?:, \.[\w-]+)? \{ --(?:swatch|tone): var\(--([\w-]+)\)", css))
    coloured = {name: colour for name, colour in meanings.items() if colour not in ("ink", "paper", "soft")}
    assert coloured == {
        "group": "group",
        "pipeline": "pipeline",
        "owner-A": "member-a",
        "owner-B": "member-b",
        "ingest": "pipeline",
    }
    assert set(re.findall(r"\.bar\.[^{]*\{[^}]*?var\(--(\w+)\)", css)) == {"tint"}


def test_events_are_reported_in_order_and_marked_by_number() -> None:
    text = Page(render(a_run())).text
    for number, event in enumerate(
        ("4.0 s broker 3 killed", "5.0 s member A has", "11.0 s the job killed"), 1
    ):
        assert f"{number} {event}" in text


def test_text_of_the_run_is_escaped() -> None:
    html = render(a_run())
    assert "Frontier &lt;Airlines&gt; &amp; Co" in html
    assert "ls &#39;demo-out/flights&#39;" in html


def test_both_themes_and_narrow_screens_are_provided_for(tmp_path: Path) -> None:
    write(a_run(), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport" content="width=device-width' in html
    light, dark = (
        set(re.findall(r"(--[\w-]+): #", part)) for part in html.split("@media screen and (prefers", 1)
    )
    assert light
    assert light == dark


def test_a_run_without_numbers_has_no_report() -> None:
    with pytest.raises(ValueError, match="did not come to its numbers"):
        render(a_run(numbers=None))


def test_a_batch_is_as_wide_as_it_took_and_as_high_as_it_was_fast() -> None:
    picture = throughput(a_run(), Frame(20.0, 1.0))
    first, second = picture.bars
    assert (first.x, first.width) == (350.0, 100.0)
    assert first.height == pytest.approx(100.0)  # 200 rows/s, the top of the axis
    assert second.height == pytest.approx(40.0)  # 80 rows/s
    assert first.width * first.height / (second.width * second.height) == pytest.approx(400 / 200)


def test_a_killed_process_ends_with_a_cross() -> None:
    by_name = {lane.name: lane for lane in lanes(a_run(), Frame(20.0, 1.0))}
    assert [bar.killed for bar in by_name["broker 3"].bars] == [True]
    assert by_name["broker 3"].bars[0].end == 20.0  # per cent: 4 s of 20
    assert [bar.kind for bar in by_name["ingest"].bars] == ["starts", "lands"]


def test_lag_breaks_without_a_response_and_every_partition_shares_a_scale() -> None:
    picture = lag(a_run(), "delays", Frame(20.0, 1.0))
    assert len(picture.lines) == 2  # nothing between 2 s and 8 s
    assert picture.highest == Sample(1.0, [300, 300])
    assert picture.row_top >= 300
    assert [row.highest for row in picture.rows] == [300, 300]
    assert [(bar.x, bar.width) for bar in picture.rows[1].owners] == [(250.0, 200.0)]
    assert picture.table[-1] == Sample(9.0, [0, 0])


def test_delays_stand_on_one_axis_with_a_zero() -> None:
    picture = delays(a_run().carriers)
    labels = [tick.label for tick in picture.ticks]
    assert "0" in labels
    assert labels[0].startswith("-")
    frontier, skywest = picture.rows
    assert frontier.arrival is not None
    assert frontier.departure is not None
    assert frontier.arrival < picture.zero < frontier.departure
    assert (skywest.departure, skywest.arrival) == (None, None)


@pytest.mark.parametrize(
    ("top", "expected"), [(1, [0, 0.5, 1]), (350_000, [0, 200_000]), (60, [0, 20, 40, 60])]
)
def test_ticks_are_round(top: float, expected: list[float]) -> None:
    assert ticks(top) == expected


@pytest.mark.parametrize("highest", [0, 1, 7, 99, 100, 101, 336_776, 1_000_000])
def test_the_axis_covers_the_highest_value_closely(highest: float) -> None:
    assert highest <= axis_maximum([highest, 0]) <= max(1.0, highest * 1.5)


def test_badges_never_cover_each_other() -> None:
    assert levels([1, 2, 9, 10, 30], room=6) == [0, 1, 0, 1, 0]
    assert levels([], room=6) == []


def test_runs_of_points_end_at_a_gap() -> None:
    points = [(0.0, 1.0), (1.0, 1.0), (5.0, 1.0), (5.5, 0.0)]
    assert list(segments_without_gap(points, 2.0)) == [points[:2], points[2:]]
    assert list(segments_without_gap([], 2.0)) == []


TEXT = ("--ink", "--soft", "--bad", "--good")
SHAPES = ("--group", "--member-a", "--member-b", "--pipeline", "--quiet")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_shapes_stand_out_from_the_paper(tmp_path: Path, theme: str) -> None:
    """As the accessibility guidelines of the web want it: 4.5 to 1 for text, 3 to 1 for what a picture is made of."""
    write(a_run(), tmp_path / "report.html")
    light, dark = (tmp_path / "report.html").read_text().split("@media screen and (prefers", 1)
    colours = dict(re.findall(r"(--[\w-]+): (#\w{6});", dark if theme == "dark" else light))
    for paper in ("--paper", "--good-paper", "--bad-paper"):
        assert [name for name in TEXT if contrast(colours[name], colours[paper]) < 4.5] == [], paper
    assert [name for name in SHAPES if contrast(colours[name], colours["--paper"]) < 3] == []


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
