"""The documentation site: it builds without a warning, so every link inside it leads somewhere, and needs no server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kclient

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Sphinx runs in a process of its own, because it changes warnings and loggers."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", target / "doctrees", DOCS, target / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target / "html"


def test_every_page_of_the_folder_is_a_page_of_the_site(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    assert len(pages) > 60
    assert {page for page in pages if not (site / page.with_suffix(".html")).is_file()} == set()


def test_the_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """The site works from a disk, without a network: scripts, styles, fonts and pictures are its own files."""
    loaded = (
        r'<(?:script|img|iframe)[^>]+src="([^"]+)"|<link[^>]+rel="(?:stylesheet|preload)"[^>]+href="([^"]+)"'
    )
    for page in site.rglob("*.html"):
        for found in re.findall(loaded, page.read_text()):
            assert not "".join(found).startswith(("http:", "https:", "//")), page


def test_search_finds_by_a_file_that_the_page_loads_as_a_script(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert index.startswith("Search.setIndex(")
    for word in ("rebalanc", "deadlett", "kc-601"):
        assert word in index.lower()
    assert 'src="searchindex.js"' in (site / "search.html").read_text()


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    elsewhere = {"ConsumerSettings", "KclientError"}  # the page of all keys, and kclient.errors
    assert {name for name in kclient.__all__ if f'id="kclient.{name}"' not in pages} == elsewhere
    calls = {name for name in dir(kclient.Consumer) if not name.startswith("_")}
    assert {name for name in calls if f'id="kclient.Consumer.{name}"' not in pages} == set()
    assert {name for name in calls if f'id="kclient.AsyncConsumer.{name}"' not in pages} == set()
