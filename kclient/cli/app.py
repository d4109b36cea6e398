"""The commands, and how unusable arguments are reported: one sentence, and the help page to read.

A command is a function with annotated parameters that returns its exit code. What only it needs, Spark above all, it
imports when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Final, Literal

from cyclopts import (
    App,
    CycloptsError,
    Group,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from rich.console import Console

from kclient.cli import SCRIPT, program
from kclient.cli.cluster_doctor import doctor
from kclient.cli.consume import consume
from kclient.cli.decode import decode
from kclient.cli.exit_codes import OK, USAGE
from kclient.cli.explain import explain
from kclient.cli.groups import groups_app
from kclient.cli.ingest import ingest_app
from kclient.cli.lag import lag, with_interval
from kclient.cli.offsets_history import offsets_history
from kclient.cli.other_tools import OTHER_COMMANDS, option_answer, words_answer
from kclient.cli.produce import produce
from kclient.cli.spark_doctor import spark_app
from kclient.cli.topics import topics_app
from kclient.cli.version import installed, version
from kclient.config.errors import is_secret

DESCRIPTION: Final = "Look into a Kafka cluster, and move its topics to where they are analysed."
EPILOGUE: Final = (
    "Data go to standard output and talk goes to standard error. Exit codes: 0 ok, 1 a bug, 2 usage or configuration, "
    "3 no broker can be reached, 4 authentication failed or a permission is missing, 5 not found, "
    "6 records are lost or cannot be decoded, 7 the brokers advertise addresses that cannot be reached, "
    "8 output not written, 130 interrupted."
)
PLAIN: Final = Parameter(negative=())  # no --no-json, no --empty-topic
CLUSTER: Final = Group("Look", sort_key=1)
SPARK: Final = Group("Move", sort_key=2)
ITSELF: Final = Group("About kclient", sort_key=3)


def build() -> App:
    """Build the whole tree of commands."""
    app = App(
        name=program(),
        help=DESCRIPTION,
        help_epilogue=EPILOGUE,
        help_format="markdown",
        version=_version,
        default_parameter=PLAIN,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        group_commands=ITSELF,
    )
    app["--help"].group = ITSELF
    app["--version"].group = ITSELF
    app.command(consume, group=CLUSTER)
    app.command(produce, group=CLUSTER)
    app.command(topics_app(CLUSTER))
    app.command(groups_app(CLUSTER))
    app.command(lag, group=CLUSTER)
    app.command(doctor, group=CLUSTER)
    app.command(ingest_app(SPARK))
    app.command(offsets_history, group=SPARK)
    app.command(spark_app(SPARK))
    app.command(decode)
    app.command(explain)
    app.command(version)
    _add_completion(app)
    return app


def _add_completion(app: App) -> None:
    """Add `kclient completion SHELL`, whose script completes every command that the app has when it runs."""

    def completion(
        shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="which")],
        /,
    ) -> int:
        """Print what completes commands and options: eval "$(kclient completion bash)"."""
        sys.stdout.write(app.generate_completion(prog_name=SCRIPT, shell=shell))
        return OK

    app.command(completion)


def call(tokens: Sequence[str]) -> int:
    """Run the command that the tokens name; its exit code. Raises what the command raises."""
    app = build()
    if not tokens:
        app.help_print(console=Console(stderr=True))
        return USAGE
    try:
        ended = app(with_interval(tokens))
    except CycloptsError as exc:
        name = " ".join((program(), *(exc.command_chain or ())))
        sys.stderr.write(f"{name}: {_sentence(exc, tokens)} Type: {name} --help\n")
        return USAGE
    return OK if ended is None else int(ended)


def name_of(tokens: Sequence[str]) -> str:
    """Return the command as it was typed, without its arguments."""
    chain, _, _ = build().parse_commands(tokens)
    return " ".join((program(), *chain))


def _version() -> str:
    return installed("kclient-kafka") or "not installed"


def _sentence(error: CycloptsError, tokens: Sequence[str]) -> str:
    if isinstance(error, UnusedCliTokensError) and any(map(is_secret, tokens)):
        return "A secret's key and its value are two arguments here. Write them as one, KEY=VALUE."
    if isinstance(error, UnusedCliTokensError):
        return _unused(error.unused_tokens or [], error.command_chain or ())
    if isinstance(error, UnknownOptionError) and (answer := _answer_to_option(error)):
        return f"Unknown option: {_typed(error)}. {answer}."
    if isinstance(error, UnknownCommandError) and (ours := OTHER_COMMANDS.get(tokens[0])):
        return f"Unknown command: {tokens[0]}. Write {ours}."
    text = " ".join(str(error).split())
    if isinstance(error, UnknownOptionError):  # whose value may be a secret
        text = text.replace(error.token.keyword or error.token.value, _typed(error))
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _answer_to_option(error: UnknownOptionError) -> str | None:
    """Return what to write for an option that is another tool's."""
    command = " ".join(error.command_chain or ())
    knows_brokers = any("-b" in argument.names for argument in error.argument_collection)
    return option_answer(command, _typed(error), knows_brokers=knows_brokers)


def _typed(error: UnknownOptionError) -> str:
    return (error.token.keyword or error.token.value).partition("=")[0]


def _unused(words: Sequence[str], chain: Sequence[str]) -> str:
    """Return the error for a word that is not an option or command: perhaps a mistyped name of one."""
    app = build()
    for name in chain:
        app = app[name]
    near = get_close_matches(words[0], [name for name in app if not name.startswith("-")], n=1)
    text = f"It does not know what to do with {' '.join(words)}."
    hint = f"Did you mean {near[0]}?" if near else words_answer(" ".join(chain), words)
    return f"{text} {hint}" if hint else text
