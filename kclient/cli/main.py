"""The command line as a whole: which command, and what its end means to the shell."""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Final

import kclient
from kclient.cli import program
from kclient.cli.error_page import page_of
from kclient.cli.exit_codes import INTERRUPTED, OK, OUTPUT, USAGE, exit_code
from kclient.errors import InternalError, KclientError
from kclient.log import get_logger
from kclient.text import printable_traceback

EXTRAS: Final = {"cyclopts": "cli", "rich": "cli", "pyarrow": "arrow", "pyspark": "spark", "fastavro": "avro"}
"""Package → the extra that brings it."""

HELP_WITHOUT_EXTRA: Final = """\
kclient {version}, a Kafka consumer for Python. The library is installed. Of the commands only explain KC-… works
without one more package; the others (consume, lag, topics, groups, ingest and more) need it.

Type: pip install 'kclient-kafka[cli]', then {program} --help
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without the extra `cli`, say what to install."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 standard error is closed: discard its output
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # do not fail on characters that the terminal cannot show, nor on bytes that are none
            stream.reconfigure(errors="backslashreplace")
    # Commands print their errors themselves, and some of them the warnings: `reporters.warnings_shown`.
    get_logger(kclient.__name__).addHandler(logging.NullHandler())
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from kclient.cli import app
    except ModuleNotFoundError as exc:
        return _without_extra(tokens, exc)
    except KeyboardInterrupt:
        return INTERRUPTED
    return _guarded(lambda: app.call(tokens), lambda: app.name_of(tokens))


def _guarded(command: Callable[[], int], name: Callable[[], str]) -> int:
    """Run a command and return its exit code, or that of its exception."""
    if sys.stdout is None:
        return _print_error(name(), "the output cannot be written: standard output is closed", OUTPUT)
    try:
        code = command()
        sys.stdout.flush()  # report a full disk here: the interpreter's own flush at exit is too late
    except KeyboardInterrupt:
        return INTERRUPTED
    except KclientError as exc:
        return _failed(name(), exc)
    except OSError as exc:  # the network's are KclientErrors: it is the output, of a full disk for one
        return _not_written(name(), exc)
    except ModuleNotFoundError as exc:
        return _not_installed(name(), exc)
    except Exception as exc:  # noqa: BLE001 an unexpected error is reported as a bug
        return _failed(name(), InternalError.of(name(), exc))
    return code


def _failed(name: str, error: KclientError) -> int:
    """Print an error. For a bug the traceback comes first: it is needed to fix it."""
    if isinstance(error, InternalError) and error.__cause__ is not None:
        sys.stderr.write(printable_traceback("".join(traceback.format_exception(error.__cause__))))
    return _print_error(name, str(error), exit_code(error))


def _not_written(name: str, error: OSError) -> int:
    """Redirect the interpreter's last flush to /dev/null: the reader closed the pipe on purpose, so say nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return OUTPUT
    return _print_error(
        name, f"the output cannot be written: {error}. Make room, or write to another place.", OUTPUT
    )


def _without_extra(tokens: Sequence[str], missing: ModuleNotFoundError) -> int:
    """Handle --version, --help and `explain CODE` without the extra; of other commands say how to install them."""
    known = getattr(kclient, "__version__", "not installed")
    if _extra_of(missing) is not None and tokens[:1] == ["explain"] and len(tokens) == 2:
        return _guarded(lambda: _explain(tokens[1]), lambda: f"{program()} explain")
    if _extra_of(missing) is None or not {"--version", "--help", "-h"} & set(tokens):
        return _not_installed(program(), missing)
    text = HELP_WITHOUT_EXTRA.format(program=program(), version=known)
    sys.stdout.write(f"{known}\n" if "--version" in tokens else text)
    return OK


def _explain(code: str) -> int:
    sys.stdout.write(page_of(code))
    return OK


def _extra_of(missing: ModuleNotFoundError) -> str | None:
    return EXTRAS.get((missing.name or "").partition(".")[0])


def _not_installed(name: str, missing: ModuleNotFoundError) -> int:
    """Print the missing extra; any other missing module is a bug."""
    extra = _extra_of(missing)
    if extra is None:
        return _failed(name, InternalError.of(name, missing))
    package = (missing.name or "").partition(".")[0]
    return _print_error(
        name, f"{package} is not installed. Type: pip install 'kclient-kafka[{extra}]'", USAGE
    )


def _print_error(name: str, why: str, code: int) -> int:
    sys.stderr.write(f"{name}: {why}\n")
    return code
