"""The generated files, and their comparison with those on disk."""

from __future__ import annotations

from pathlib import Path

from codegen.error_codes import parse_errors
from codegen.errors import SchemaError
from codegen.parse import parse_file
from codegen.render import environment, render_error_codes, render_index, render_message
from codegen.spec import MessageSpec

_PACKAGE = '''"""Codecs of all messages, written by `python -m codegen` from `schemas/`; edits here are lost."""
'''


def generate(schemas: Path) -> dict[str, str]:
    """Return file name → text for all files of the output folder. Raise SchemaError."""
    env = environment()
    paths = [path for path in sorted(schemas.glob("*.json")) if not path.name.endswith(".schema.json")]
    messages = [parse_file(path) for path in paths]
    _refuse_twins(messages)
    files = {f"{message.module}.py": render_message(env, message) for message in messages}
    files["__init__.py"] = _PACKAGE
    files["index.py"] = render_index(env, messages)
    files["error_codes.py"] = render_error_codes(env, parse_errors(schemas / "errors.tsv"))
    return files


def _refuse_twins(messages: list[MessageSpec]) -> None:
    """Check that an API has one request and one response, a record type one key and one value."""
    known: dict[tuple[str, int], str] = {}
    for message in messages:
        if message.api_key is None:
            continue
        other = known.setdefault((message.type, message.api_key), message.name)
        if other != message.name:
            reason = f"apiKey {message.api_key} belongs to the {message.type} {other} too"
            raise SchemaError(message.file, "", reason)


def differences(files: dict[str, str], folder: Path) -> list[str]:
    """Return one line for each file that is missing, stale or extra."""
    present = {path.name for path in folder.glob("*.py")}
    missing = [f"missing: {name}" for name in sorted(files.keys() - present)]
    extra = [f"extra: {name}" for name in sorted(present - files.keys())]
    stale = [
        f"stale: {name}"
        for name in sorted(files.keys() & present)
        if (folder / name).read_text("utf-8") != files[name]
    ]
    return missing + stale + extra


def write(files: dict[str, str], folder: Path) -> int:
    """Make the folder contain exactly these files; return the number of changes."""
    folder.mkdir(exist_ok=True)
    changed = differences(files, folder)
    for line in changed:
        state, _, name = line.partition(": ")
        if state == "extra":
            (folder / name).unlink()
        else:
            (folder / name).write_text(files[name], "utf-8")
    return len(changed)
