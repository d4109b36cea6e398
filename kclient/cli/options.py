"""Options that several commands share: the cluster's address and security settings, and checked values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, get_args

import attrs
from cyclopts import Group, Parameter, Token

from kclient.cli import program
from kclient.cli.profiles import read_profile
from kclient.config import Config, load
from kclient.config.errors import is_secret, shown_key
from kclient.config.model import rules
from kclient.config.properties import read_properties
from kclient.errors import ArgumentError, ConfigError
from kclient.security.secret import env, file, problem_of
from kclient.spark.ingest.setting_values import Location, interval_ms

CONNECTION = Group("Connection", sort_key=10)
BOOTSTRAP = ("-b", "--bootstrap")
REFERENCES = {".env": env, ".file": file}
MISSING = "bootstrap_servers is missing"
SAY_WHERE = "Say where the cluster is with -b HOST:PORT, --properties FILE or --profile NAME."
CONSUMERS_OWN = {
    "group.id": "this command takes a group from no file",
    "auto.offset.reset": "this command begins where its own options and its last run say",
    "enable.auto.commit": "this command commits by its own options",
    "key.deserializer": "this command reads bytes",
    "value.deserializer": "this command reads bytes",
    "interceptor.classes": "interceptors see the records of a consumer",
}
"""Settings in a shared file that only a consumer uses, and the reason why other commands ignore them."""


def flag(text: str, **more: Any) -> Parameter:
    """Declare a switch."""
    return Parameter(help=text, show_default=False, **more)


def option(text: str, metavar: str | None = None, **more: Any) -> Parameter:
    """Declare an option with a value. Help shows its default, if it has one."""
    return Parameter(help=text, metavar=metavar, **more)


def choice(text: str, alias: Any, **more: Any) -> Parameter:
    """Declare an option with one of a Literal's words. It is text, so that the word none is allowed too."""
    return Parameter(help=text, choices=get_args(alias), **more)


def seconds(_type: Any, tokens: Sequence[Token]) -> float:
    """Convert a time greater than 0 to seconds; `5` and `5s` mean the same."""
    return interval_ms(tokens[0].value) / 1000


@attrs.frozen(kw_only=True)
class ConnectionOptions:
    """The cluster's address, and the settings of a client."""

    bootstrap_servers: Annotated[
        str | None,
        option(
            "where to find the cluster (required, here or in --properties)",
            "HOST:PORT,…",
            group=CONNECTION,
            alias=BOOTSTRAP,
        ),
    ] = None
    properties: Annotated[
        str | None,
        option(
            "settings of a Java client, security.protocol and the like",
            "FILE",
            group=CONNECTION,
            alias="--config",
        ),
    ] = None
    profile: Annotated[
        str | None,
        option(
            "the settings of this profile in ~/.config/kclient/profiles.toml",
            "NAME",
            group=CONNECTION,
            env_var="KCLIENT_PROFILE",
        ),
    ] = None
    settings: Annotated[
        tuple[str, ...] | None,
        option("one setting of a client; repeat for more", "KEY=VALUE", group=CONNECTION, name="--set"),
    ] = None

    def pairs(self) -> dict[str, str]:
        """Return the settings given one by one. Raise ConfigError for one that is not KEY=VALUE."""
        pairs = {}
        for number, text in enumerate(self.settings or (), 1):
            key, equals, value = text.partition("=")
            if not (key and equals):
                raise ConfigError(
                    f"--set number {number} is not KEY=VALUE (it is not shown, as it may hold a secret). "
                    "Write --set security.protocol=SSL, for one."
                )
            pairs[key] = value
        return pairs

    def servers(self) -> dict[str, Any]:
        """Return the argument of `-b`, if it was given."""
        return {} if self.bootstrap_servers is None else {"bootstrap_servers": self.bootstrap_servers}

    def source(self) -> tuple[str | None, dict[str, str]]:
        """Return the servers and the other settings as `kafka.*` options of the Spark source.

        `--set` goes before the file, and that before the profile.

        A file that many clients share has settings that only a consumer uses (its group, where it begins, its
        deserializers): they are left out, and a line on standard error names them.

        Raise ConfigError for a pair that is not KEY=VALUE, and for a file that cannot be read or has a duplicate key.
        """
        shared = self._shared()
        given = self.pairs()
        warn_of_arguments("--set", given)
        pairs = shared | given
        servers = pairs.pop("bootstrap.servers", None)
        return self.bootstrap_servers or servers, {f"kafka.{key}": value for key, value in pairs.items()}

    def _shared(self) -> dict[str, str]:
        """Return the settings of profile and file without those that only the consumer of an application uses."""
        profile, file = self._profile(), self._file()
        for key, instead in CONSUMERS_OWN.items():
            for settings, origin in ((profile, f"profile {self.profile}"), (file, self.properties)):
                if settings.pop(key, None) is not None:
                    sys.stderr.write(f"{program()}: {key} of {origin} is left out: {instead}\n")
        return profile | file

    def _profile(self) -> dict[str, str]:
        """Return the settings of the profile. Raise ConfigError."""
        return {} if self.profile is None else read_profile(self.profile)

    def _file(self) -> dict[str, str]:
        """Return the settings of the properties file."""
        if self.properties is None:
            return {}
        try:
            found = read_properties(self.properties)
        except (OSError, ValueError) as exc:
            raise ConfigError(
                f"--properties {self.properties} cannot be read: {problem_of(exc)}. Give a file that is there."
            ) from exc
        pairs: dict[str, str] = {}
        for prop in found:
            if prop.key in pairs:
                shown = shown_key(prop.key, prop.value)
                raise ConfigError(f"--properties: {shown} stands twice ({prop.place}). Keep one.")
            pairs[prop.key] = prop.value
        return pairs

    def for_client(self) -> tuple[dict[str, Any], str | None]:
        """Return settings and file for `load` or a consumer, without `-b`. They may name secrets, as for `source`.

        Raise ConfigError for a setting that is not KEY=VALUE; problems of the file are raised by its loader.
        """
        pairs: dict[str, Any] = {**self.pairs()}
        warn_of_arguments("--set", pairs)
        try:
            both = {**self._file(), **pairs}
        except ConfigError:
            return pairs, self.properties
        if self.profile is not None:
            both = _dotted(self._profile()) | _dotted(both)
        found = dict(_resolved(key, value) for key, value in both.items())
        if self.profile is not None:
            return found, None
        return (pairs, self.properties) if found.keys() == both.keys() else (found, None)

    def consumer_settings(self, **options: Any) -> dict[str, Any]:
        """Return the settings of a consumer that this command makes: `options` before `--set` before the file.

        What would make it another program's consumer (its group, where it begins, its deserializers) comes from
        `options` alone: in the file it is left out, and a line on standard error names it.
        """
        given = self.pairs()
        warn_of_arguments("--set", given)
        pairs = dict(
            _resolved(key, value) for key, value in (_dotted(self._shared()) | _dotted(given)).items()
        )
        found = {key.replace(".", "_"): value for key, value in pairs.items()}
        if self.bootstrap_servers is None and "bootstrap_servers" not in found:
            raise ConfigError(f"{MISSING}. {SAY_WHERE}")
        return found | self.servers() | {key: value for key, value in options.items() if value is not None}

    def config(self, **options: Any) -> Config:
        """Return the client's settings: options before `--set` before the file."""
        given = {**self.servers(), **options}
        arguments = {key: value for key, value in given.items() if value is not None}
        try:
            return load(arguments, *self.for_client())
        except ConfigError as exc:
            if not any(problem.startswith(MISSING) for problem in exc.problems):
                raise
            raise ConfigError(f"{exc.text} {SAY_WHERE}", problems=exc.problems) from exc


@attrs.frozen(kw_only=True)
class WhereAsked(ConnectionOptions):
    """The same for a command that can do without the cluster."""

    bootstrap_servers: Annotated[
        str | None,
        option("ask this cluster for the ends of the logs", "HOST:PORT,…", group=CONNECTION, alias=BOOTSTRAP),
    ] = None


def _dotted(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by one spelling of their keys, so that those of one source replace those of another."""
    return {key.replace("_", "."): value for key, value in pairs.items()}


def check_catalog(sink: Location, catalog: str | None) -> None:
    """Raise ArgumentError for --catalog with a sink that has none."""
    if catalog is not None and sink.kind != "iceberg":
        raise ArgumentError("--catalog is for --sink iceberg:…: leave it out.")


def warn_of_arguments(option: str, keys: Iterable[str]) -> None:
    """Warn of secrets on the command line, which `ps` and the shell's history show."""
    if found := [key for key in keys if is_secret(key)]:
        names = ", ".join(found)
        sys.stderr.write(
            f"{program()}: WARNING: {option} {names}: every user of this machine can read the command line. Write "
            f"{found[0]}.env=NAME or {found[0]}.file=PATH, or put it into --properties FILE.\n"
        )


def _resolved(key: str, value: Any) -> tuple[str, Any]:
    """Resolve `sasl.password.env=NAME` and `sasl.password.file=PATH`, which name a secret instead of holding it.

    A key of Kafka's that ends in `.file`, as `sasl.oauthbearer.assertion.file` does, has a path as its value.
    """
    is_key = key.replace(".", "_") in rules()
    for suffix, provider in REFERENCES.items():
        if key.replace("_", ".").endswith(suffix) and not is_key:
            return key[: -len(suffix)], provider(value)
    return key, value
