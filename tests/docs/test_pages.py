"""Every page of the documentation: its Python blocks run, in their order, in one namespace and a directory of its own.

A page whose blocks need more than that (a real broker, Spark, arguments) has a test of its own, named in `ELSEWHERE`.
A block that shows a part of a program is ```` ```python fragment ````: it must only be valid Python.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(DOCS).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
FRAGMENT = re.compile(r"^ *```python fragment\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)

# Page → the test that runs its blocks.
ELSEWHERE = {
    "api.md": "docs/test_api.py",
    "assignors.md": "docs/test_assignors.py",
    "closing.md": "docs/test_closing.py",
    "configuration.md": "docs/test_configuration.py",
    "decoding.md": "docs/test_spark_pages.py",
    "direct-parquet.md": "docs/test_direct_parquet.py",
    "group-protocols.md": "docs/test_group_protocols.py",
    "how-to/fastapi.md": "docs/test_fastapi.py",
    "how-to/logging.md": "docs/test_logging.py",
    "how-to/proxies.md": "docs/test_proxies.py",
    "how-to/spark-jobs.md": "docs/test_spark_pages.py",
    "ingest.md": "docs/test_ingest.py",
    "interceptors.md": "docs/test_metrics_and_interceptors.py",
    "lakehouse.md": "docs/test_lakehouse.py",
    "metrics.md": "docs/test_metrics_and_interceptors.py",
    "offsets-history.md": "docs/test_spark_pages.py",
    "offsets.md": "docs/test_offsets.py",
    "rebalances.md": "docs/test_rebalances.py",
    "security-recipes.md": "docs/test_security_recipes.py",
    "security.md": "docs/test_security.py",
    "services.md": "docs/test_services.py",
    "spark-cluster.md": "spark/cluster_page.py",
    "spark-streaming.md": "spark/test_stream_spark.py",
    "spark.md": "spark/test_versions.py",
    "stuck.md": "docs/test_stuck.py",
    "testing.md": "docs/test_testing.py",
    "tutorial/commit.md": "docs/test_tutorial.py",
    "tutorial/group.md": "docs/test_tutorial.py",
    "tutorial/index.md": "docs/test_tutorial.py",
    "tutorial/lag.md": "docs/test_tutorial.py",
    "tutorial/read.md": "docs/test_tutorial.py",
    "tutorial/rebalance.md": "docs/test_tutorial.py",
    "tutorial/spark.md": "docs/test_tutorial.py",
}


@pytest.mark.parametrize(
    "page", [name for name, text in PAGES.items() if python_blocks(text) and name not in ELSEWHERE]
)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page}
    for number, block in enumerate(python_blocks(PAGES[page])):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if FRAGMENT.search(text)])
def test_a_fragment_is_valid_python(page: str) -> None:
    for fragment in FRAGMENT.findall(PAGES[page]):
        ast.parse(textwrap.dedent(fragment))


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_a_page_with_a_test_of_its_own_is_in_it(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / "tests" / test).read_text()
    assert python_blocks(PAGES[page]), "it has no blocks: take it out of ELSEWHERE"


def test_no_block_hides_from_these_tests() -> None:
    """Every Python block has one of the two forms: one that runs is not indented."""
    for page, text in PAGES.items():
        found = len(re.findall(r"```\s*(?:python|py|pycon)\b", text))
        assert found == len(python_blocks(text)) + len(FRAGMENT.findall(text)), page
