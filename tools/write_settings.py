"""Write kclient/config/settings.py from the keys in kclient/config/model.py: `python -m tools.write_settings`.

`**settings: Unpack[ConsumerSettings]` lets editors and type checkers show and explain the keys. A test in tests/config
compares the file with the table.
"""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs

from kclient.config.model import Config, keys

FILE: Final = Path(__file__).parents[1] / "kclient" / "config" / "settings.py"

HEAD: Final = '''"""The settings of a consumer as keyword arguments, for editors and type checkers.

Written by `python -m tools.write_settings` from the keys of `model.py`, which also check the values. The types are what
a value may be written as: a number or a boolean also as text, a list also as comma-separated text. In place of a value
a function without parameters may provide it. The deserializers are parameters of the consumers.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict

Text: TypeAlias = str | Callable[[], Any]
Number: TypeAlias = int | str | Callable[[], Any]
Boolean: TypeAlias = bool | str | Callable[[], Any]
Texts: TypeAlias = str | Sequence[str] | Callable[[], Any]


class ConsumerSettings(TypedDict, total=False):
    """Kafka's own keys in snake_case, then kclient's own. Times are milliseconds, sizes bytes."""

'''

WRITTEN_AS: Final = {
    "str": "Text",
    "int": "Number",
    "float": "Number | float",
    "bool": "Boolean",
    "tuple[str, ...]": "Texts",
    "Secret": "Text",
    "tuple[Any, ...]": "Any",  # classes, objects or their names
    "DeadLetterSink": "Any",
    "TokenProvider": "Any",
    "ssl.SSLContext": "ssl.SSLContext | Callable[[], Any]",
    "str | timedelta": "Text | timedelta",
}

NAMED: Final = ("key_deserializer", "value_deserializer")
"""Parameters of the consumers themselves: they say of what types keys and values are."""


def annotation(field: attrs.Attribute[Any]) -> str:
    """Return what a value of this key may be written as."""
    declared = Config.__annotations__[field.name]
    plain = declared.removesuffix(" | None")
    written = WRITTEN_AS[plain]
    return written if plain == declared or written == "Any" else f"{written} | None"


def meanings() -> dict[str, str]:
    """Return what each key means: the string below its declaration."""
    (table,) = ast.parse(inspect.getsource(Config)).body
    assert isinstance(table, ast.ClassDef)
    found = {}
    for declared, below in pairwise(table.body):
        if isinstance(declared, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(declared.target, ast.Name)
            found[declared.target.id] = ast.literal_eval(below.value)
    return found


def rendered() -> str:
    """Return the text of the file."""
    means = meanings()
    return HEAD + "".join(
        f'    {field.name}: {annotation(field)}\n    """{means[field.name]}\n\n    {default(field)}\n    """\n'
        for field in keys()
        if field.name not in NAMED
    )


def default(field: attrs.Attribute[Any]) -> str:
    """Return a sentence on the value that the key has when it is not set."""
    if field.default is attrs.NOTHING:
        return "It has no default."
    return f"Default: {json.dumps(field.default) if isinstance(field.default, str) else repr(field.default)}."


if __name__ == "__main__":
    FILE.write_text(rendered())
