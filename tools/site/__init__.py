"""A Sphinx extension for the documentation site: what the Markdown of docs/ needs beyond MyST.

| | |
|---|---|
| links whose text is the name of a page | show its title |
| links to files above docs/ | lead to the page that includes the file |
| indented paragraphs of a docstring | are shown as they are |
| `sequence` | a directive for diagrams: `sequence.py` |
| README.md of a folder | lists the pages of its folder in the navigation; elsewhere it stays plain Markdown |
"""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from pygments.lexers.special import TextLexer

from tools.site.sequence import Sequence

# Link as written on a page of docs/ → the page that includes the file.
INCLUDED: Final = {"](../SECURITY.md": "](vulnerabilities.md"}

# The pages that a folder's README.md lists. Patterns, since these folders grow.
LISTED: Final = {"errors/README": "KC-*", "specification/README": "[a-z]*"}


# [rebalances.md](rebalances.md#listeners): MyST writes the title into a link without a text.
NAMED_BY_FILE: Final = re.compile(r"\[`?[\w./-]+\.md`?\]\((?=[\w./-]+\.md[)#])")


def on_source_read(_app: Any, page: str, source: list[str]) -> None:
    """Change the text of a page before it is parsed; Sphinx passes it as a list of one."""
    for written, link in INCLUDED.items():
        source[0] = source[0].replace(written, link)
    source[0] = NAMED_BY_FILE.sub("[](", source[0])
    if page in LISTED:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:titlesonly:\n\n{LISTED[page]}\n```\n"


def matched(record: logging.LogRecord) -> bool:
    """Drop the warning that a pattern of a toctree matches no page: Sphinx gives it no type to suppress it by."""
    return getattr(record, "subtype", None) != "empty_glob"


def on_docstring(
    _app: Any, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Make indented paragraphs of a docstring literal blocks, in place: docstrings are plain text."""
    for number in range(len(lines) - 1, 0, -1):
        begins = lines[number].startswith("    ") and not lines[number - 1].strip()
        above = next((line for line in reversed(lines[:number]) if line.strip()), "")
        if begins and not above.startswith("    "):
            lines[number:number] = ["::", ""]


def setup(app: Any) -> dict[str, Any]:
    """Register the extension; Sphinx calls this."""
    logging.getLogger("sphinx.sphinx.directives.other").addFilter(matched)
    app.connect("source-read", on_source_read)
    app.connect("autodoc-process-docstring", on_docstring)
    app.add_directive("sequence", Sequence)
    app.add_lexer("cron", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
