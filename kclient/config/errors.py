"""How texts call a key that is none of ours: a slip in writing can put a password into the place of a key.

sasl.password hunter2      --set sasl.passwordhunter2=      a line of a properties file that is the password alone
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kclient.config.model import SECRET_KEYS
from kclient.errors import ConfigError
from kclient.text import LONGEST_TEXT, printable

HIDDEN: Final = "a key that is not shown, as it may be a secret,"
_LOOKS_LIKE_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*")


def shown_key(written: str, value: Any) -> str:
    """The key as it was written, unless it may be a secret: one without a value, or with a secret's key in front."""
    name = written.strip().replace(".", "_").replace("-", "_").lower()
    if name in SECRET_KEYS:
        return written
    references = [f"{key}_{kind}" for key in SECRET_KEYS for kind in ("env", "file")]
    if (found := [key for key in SECRET_KEYS if name.startswith(key)]) and name not in references:
        return f"a key that begins with {found[0]}, and goes on with what is not shown,"
    if value == "" or not _LOOKS_LIKE_KEY.fullmatch(written.strip()):
        return HIDDEN
    return printable(written)


def is_secret(name: str) -> bool:
    """Whether this is a key, or an option of the Spark source, that holds a secret itself."""
    key = name.strip().lower().removeprefix("kafka.").replace(".", "_")
    return key in SECRET_KEYS or key == "schema_registry_auth"


def config_error(what: str, problems: Sequence[str], again: str) -> ConfigError:
    """`what` has these problems (its verb included); `again` is what to do when they are gone."""
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    listed = "".join(f"\n  - {printable(problem, LONGEST_TEXT)}" for problem in problems)
    text = f"{what} {count}:{listed}\nCorrect what is listed and {again}."
    return ConfigError(text, problems=tuple(problems))
