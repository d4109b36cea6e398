"""From what the user wrote to one Config: keyword arguments before the mapping before the file before the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from os import PathLike
from typing import Any, Final, NamedTuple

import attrs

from kclient.config import plugins, rules, spellings
from kclient.config.errors import config_error, shown_key
from kclient.config.model import CALLABLES, SECRETS, Config, keys
from kclient.config.model import rules as rules_by_key
from kclient.config.properties import read_properties
from kclient.config.refused import REFUSED, refusal
from kclient.config.values import Rule
from kclient.security.secret import problem_of

DESERIALIZERS: Final = ("key_deserializer", "value_deserializer")
PLUGINS: Final = ("interceptors", "metric_reporters")


class Setting(NamedTuple):
    """One key as the user wrote it, its value and its place."""

    written: str
    value: Any
    place: str


def load(
    arguments: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    properties: str | PathLike[str] | None = None,
) -> Config:
    """Join the sources and check the whole: `arguments` go before `config`, that before the file `properties`.

    Every source may write a key with dots or underscores. `.explain()` of the result is a table of all keys with their
    values, where each was set, and their defaults. Raises one ConfigError with every problem in `.problems`.
    """
    problems: list[str] = []
    settings: dict[str, Setting] = {}
    files, mapped = _from_file(properties, problems), _from_mapping(config, problems)
    for source in (files, mapped, _from_arguments(arguments)):
        settings.update(_unique(source, problems))
    given = _check(settings, problems)
    values = _defaults() | given
    if "bootstrap_servers" not in settings:
        problems.append("bootstrap_servers is missing: name at least one host:port")
    elif not problems:
        problems += rules.disagreements(values, given, _defaults())
    if problems:
        raise config_error("The configuration has", problems, "try again")
    rules.settle(values, given)
    _make_objects(values)
    return Config(**values, sources={name: settings[name].place for name in given})


def _from_arguments(arguments: Mapping[str, Any]) -> Iterable[Setting]:
    return [Setting(name, value, "arguments") for name, value in arguments.items()]


def _from_mapping(config: Any, problems: list[str]) -> Iterable[Setting]:
    if config is None:
        return []
    if not isinstance(config, Mapping):
        is_path = isinstance(config, str) and not any(sign in config for sign in "=:@")
        shown = repr(config) if is_path else f"a {type(config).__name__}"  # whose parts may be secrets
        problems.append(f"config is a mapping of keys to values, not {shown}; a file is given as properties=")
        return []
    return [Setting(str(name), value, "config") for name, value in config.items()]


def _from_file(path: str | PathLike[str] | None, problems: list[str]) -> Iterable[Setting]:
    if path is None:
        return []
    try:
        return [Setting(*found) for found in read_properties(path)]
    except (OSError, ValueError) as exc:  # ValueError: a path with NUL
        problems.append(f"the properties file {path} cannot be read: {problem_of(exc)}")
        return []


def _unique(source: Iterable[Setting], problems: list[str]) -> dict[str, Setting]:
    """Return the settings of one source by their snake_case name; the same key twice is a problem."""
    found: dict[str, Setting] = {}
    for setting in source:
        name = setting.written.replace(".", "_").strip()
        name = spellings.KAFKAS_SPELLINGS.get(name, name)
        if name in found:
            shown = shown_key(name, setting.value)
            problems.append(f"{shown} is set twice ({found[name].place} and {setting.place}); keep one")
        found[name] = setting
    return found


def _check(settings: Mapping[str, Setting], problems: list[str]) -> dict[str, Any]:
    """Return the checked values of the keys that kclient honours; add what is wrong with others to `problems`."""
    by_key = rules_by_key()
    given: dict[str, Any] = {}
    for name, (written, value, place) in settings.items():
        if rule := by_key.get(name):
            if value is None and _defaults().get(name, "") is None:
                continue
            shown = "" if rule in SECRETS or "@" in repr(value) else f"={value!r}"  # user:password@host
            try:
                given[name] = rule(_provided(value, rule))
            except ValueError as exc:
                problems.append(f"{written}{shown} ({place}) {exc}{_unit(name)}")
        elif refused := refusal(name):
            if not refused.allows(value):
                problems.append(f"{written} ({place}) is refused: {refused.reason}")
        else:
            shown = shown_key(written, value)
            problems.append(spellings.answer(name, f"{shown} ({place})", [*by_key, *REFUSED]))
    return given


def _unit(name: str) -> str:
    """Return the unit of a key's number, for an error after seconds or "45s" were given."""
    return "; it counts milliseconds" if name.endswith("_ms") else ""


def _provided(value: Any, rule: Rule) -> Any:
    """Return what a provider provides. A secret's provider stays, to be called whenever the secret is needed."""
    return value() if callable(value) and rule not in SECRETS | CALLABLES else value


def _defaults() -> dict[str, Any]:
    return {field.name: field.default for field in keys() if field.default is not attrs.NOTHING}


def _make_objects(values: dict[str, Any]) -> None:
    """Make what is configured as a class, and configure what reads the settings; if one raises, all are closed."""
    settings = {name.replace("_", "."): value for name, value in values.items()}
    with ExitStack() as made:
        for name in DESERIALIZERS:
            if (raw := values[name]) is not None:
                values[name] = plugins.as_callable(raw, settings, made, is_key=name.startswith("key"))
        for name in PLUGINS:
            values[name] = plugins.make(values[name], settings, made)
        made.pop_all()


def discard(config: Config) -> None:
    """Close the objects of a configuration whose consumer could not be made."""
    for name in PLUGINS:
        for plugin in getattr(config, name):
            plugins.close_quietly(plugin)
    for name in DESERIALIZERS:
        owner = getattr(getattr(config, name), "__self__", None)
        if hasattr(owner, "deserialize"):
            plugins.close_quietly(owner)
