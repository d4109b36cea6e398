"""`kclient completion SHELL`: a script that completes commands and options in a shell."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import App, Parameter

from kclient.cli.exit_codes import OK
from kclient.cli.program import SCRIPT


def add_completion(app: App) -> None:
    """Give the app the command; the script knows every command that the app has when it is asked for."""

    def completion(
        shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="which")],
        /,
    ) -> int:
        """Print what completes commands and options: eval "$(kclient completion bash)"."""
        sys.stdout.write(app.generate_completion(prog_name=SCRIPT, shell=shell))
        return OK

    app.command(completion)
