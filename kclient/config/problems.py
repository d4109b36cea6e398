"""All problems of a configuration in one error, so that a user mends them in one go."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.errors import ConfigError
from kclient.text import LONGEST_TEXT, printable


def config_error(what: str, problems: Sequence[str], again: str) -> ConfigError:
    """`what` has these problems (its verb included); `again` is what to do when they are gone."""
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    listed = "".join(f"\n  - {printable(problem, LONGEST_TEXT)}" for problem in problems)
    text = f"{what} {count}:{listed}\nCorrect what is listed and {again}."
    return ConfigError(text, problems=tuple(problems))
