"""Named profiles: the settings of several clusters in one file, ~/.config/kclient/profiles.toml or $KCLIENT_PROFILES.

    [dev]
    bootstrap.servers = "localhost:9092"

    [production]
    bootstrap.servers = "broker1:9093,broker2:9093"
    security.protocol = "SASL_SSL"
    sasl.mechanism = "SCRAM-SHA-512"
    sasl.username = "alice"
    sasl.password.file = "/run/secrets/kafka"

Keys are those of a Java client, as in a properties file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kclient.config.errors import shown_key
from kclient.errors import ConfigError
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.secret import problem_of
from kclient.text import format_names

VARIABLE: Final = "KCLIENT_PROFILES"


def profiles_file() -> Path:
    """Return the file that has the profiles, whether it exists or not."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kclient" / "profiles.toml"


def read_profile(name: str) -> dict[str, str]:
    """Return the settings of a profile by their dotted keys.

    Raise ConfigError for a file that cannot be read, a profile that it does not have, and a value that is no setting.
    """
    file = profiles_file()
    try:
        found = tomllib.loads(read_local(file, LARGEST_TEXT).decode())
    except (OSError, ValueError) as exc:
        # The text of a TOML error has positions and no values, which may be secrets.
        why = str(exc) if isinstance(exc, tomllib.TOMLDecodeError) else problem_of(exc)
        raise ConfigError(
            f"--profile {name}: {file} cannot be read: {why}. Write it as TOML, a table for each profile."
        ) from exc
    profile = found.get(name)
    if not isinstance(profile, dict):
        near = get_close_matches(name, found, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"It has {format_names(list(found)) or 'none'}."
        raise ConfigError(f"--profile {name}: {file} has no such profile. {hint}")
    return {key: _text(name, key, value) for key, value in _flat(profile)}


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key of each value: TOML reads `ssl.truststore.location` as tables inside each other."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _text(profile: str, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(
        f"--profile {profile}: {shown_key(key, value)} is neither a text, a number, true nor false"
    )
