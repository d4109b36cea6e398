"""The error with all problems of a configuration, which never shows a secret written in place of a key.

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
    """Return the key as written, or a description if it may be a secret: without a value, or after a secret's key."""
    name = written.strip().replace(".", "_").replace("-", "_").lower()
    if name in SECRET_KEYS:
        return written
    references = [f"{key}_{kind}" for key in SECRET_KEYS for kind in ("env", "file")]
    if (found := [key for key in SECRET_KEYS if name.startswith(key)]) and name not in references:
        return f"a key that begins with {found[0]}, followed by a text that is not shown,"
    if value == "" or not _LOOKS_LIKE_KEY.fullmatch(written.strip()):
        return HIDDEN
    return printable(written)


def is_secret(name: str) -> bool:
    """Return whether this key, or option of the Spark source, holds a secret."""
    key = name.strip().lower().removeprefix("kafka.").replace(".", "_")
    return key in SECRET_KEYS or key == "schema_registry_auth"


def config_error(what: str, problems: Sequence[str], again: str) -> ConfigError:
    """Return the error for all problems. `what` is the start of the sentence, `again` the next step."""
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    listed = "".join(f"\n  - {printable(problem, LONGEST_TEXT)}" for problem in problems)
    text = f"{what} {count}:{listed}\nCorrect what is listed and {again}."
    return ConfigError(text, problems=tuple(problems))
