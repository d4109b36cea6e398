"""The settings of `kclient offsets-history`, checked as a whole before anything is opened. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kclient.config.errors import config_error
from kclient.config.values import Rule, servers
from kclient.errors import ConfigError
from kclient.spark.ingest import setting_values
from kclient.spark.ingest.settings import as_typed, flag_of, given_as
from kclient.spark.options import SourceOptions

TOPIC: Final = "__consumer_offsets"
EVERY_MS: Final = 300_000
RECORDS_PER_FILE: Final = 100_000

OURS: Final = ("kafka.bootstrap.servers", "kafka.isolation.level", "kafka.group.id")
"""Keys that the job sets itself, or does not use: it commits nothing."""


RULES: Final[Mapping[str, Rule]] = {
    "bootstrap": lambda raw: ",".join(servers(raw)),
    "out": setting_values.directory,
    "every": setting_values.interval_ms,
    "records_per_file": setting_values.count,
    "options": setting_values.pairs,
}
"""Setting → its rule. `options` are `kafka.*` keys of the client."""


@attrs.frozen(kw_only=True)
class OffsetsHistorySettings:
    """Whose commits and groups are kept, and where. `every_ms` is the time between two runs of a watch."""

    bootstrap: str
    out: str
    every_ms: int = EVERY_MS
    records_per_file: int = RECORDS_PER_FILE
    options: Mapping[str, str] = attrs.field(factory=dict, repr=lambda pairs: repr(sorted(pairs)))

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> OffsetsHistorySettings:
        """Check the settings of a command line or a program; None counts as not given.

        Raises one ConfigError with all problems in `.problems`.
        """
        problems = [f"{name} is not a setting of offsets-history" for name in given if name not in RULES]
        found: dict[str, Any] = {}
        for name, rule in RULES.items():
            try:
                if given.get(name) is not None:
                    found[name] = rule(given[name])
            except ValueError as exc:
                problems.append(f"{flag_of(name)} {exc}")
        problems += [f"--{name} is missing" for name in ("bootstrap", "out") if given.get(name) is None]
        problems += [
            f"{given_as(name)} is not for offsets-history: leave it out"
            for name in found.get("options", {})
            if not name.lower().startswith("kafka.") or name.lower() in OURS
        ]
        if problems:
            raise _error(problems)
        if "every" in found:
            found["every_ms"] = found.pop("every")
        settings = cls(**found)
        try:
            settings.source()
        except ConfigError as exc:
            raise _error([as_typed(problem, settings.options) for problem in exc.problems]) from exc
        return settings

    def source(self) -> SourceOptions:
        """Return the source options for the offsets topic, without aborted records."""
        ours = {"kafka.bootstrap.servers": self.bootstrap, "kafka.isolation.level": "read_committed"}
        return SourceOptions.parse(
            {**self.options, **ours, "subscribe": TOPIC, "groupIdPrefix": "offsets-history"}
        )


def _error(problems: list[str]) -> ConfigError:
    return config_error("The settings of offsets-history have", problems, "start again")
