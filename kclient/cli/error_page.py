"""The pages of the error codes, which are in the wheel: kclient/error_pages is a link to docs/errors.

Nothing here needs the extra `cli`: every error names `kclient explain`, so that must work in every install.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

import kclient
from kclient.errors import ArgumentError

NAME: Final = "error_pages"
_CODE: Final = re.compile(r"(?:KC-?)?(\d{3})", re.ASCII | re.IGNORECASE)
_TITLE: Final = re.compile(r"# (KC-\d{3}) · (\w+)\n+(.+)")


def page_of(code: str) -> str:
    """Return the page of an error code, as Markdown: KC-601, kc601 and 601 are the same. Raise ArgumentError."""
    found = _CODE.fullmatch(code)
    page = files(kclient) / NAME / f"KC-{found[1]}.md" if found else None
    if page is None or not page.is_file():
        raise ArgumentError(
            f"{code} is not the code of an error. Codes stand at the end of an error's text, as [KC-601]. "
            "Type kclient explain without a code to see them all."
        )
    return page.read_text(encoding="utf-8")


def all_pages() -> list[tuple[str, str, str]]:
    """Return code, class and first sentence of every page, by code."""
    folder = files(kclient) / NAME
    texts = [page.read_text(encoding="utf-8") for page in folder.iterdir() if page.name.startswith("KC-")]
    return sorted((found[1], found[2], found[3]) for text in texts if (found := _TITLE.match(text)))
