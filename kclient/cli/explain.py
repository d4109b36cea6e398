"""`kclient explain KC-601`: print the page of an error code."""

from __future__ import annotations

import json as json_form
import sys
from typing import Annotated

from cyclopts import Parameter

from kclient.cli.error_page import all_pages, page_of
from kclient.cli.exit_codes import OK
from kclient.cli.options import flag
from kclient.cli.table import table


def explain(
    code: Annotated[
        str | None, Parameter(help="the code at the end of an error's text; none lists all")
    ] = None,
    /,
    *,
    json: Annotated[
        bool, flag("one JSON object: code and page; without a code one on a line for each")
    ] = False,
) -> int:
    """Explain an error: what it means, its likely causes, and what to do."""
    if code is not None:
        page = page_of(code)
        sys.stdout.write(json_form.dumps({"code": page.split()[1], "page": page}) + "\n" if json else page)
        return OK
    pages = all_pages()
    if json:
        keys = ("code", "class", "text")
        lines = [json_form.dumps(dict(zip(keys, page, strict=True)), ensure_ascii=False) for page in pages]
    else:
        lines = table(("CODE", "CLASS", "MEANS"), pages, right=())
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return OK
