"""Which options Spark might show although they hold a secret: one warning, which recommends references.

Spark pickles options into plans, keeps them for a query's life and hides values by the names of options. The names that
Kafka's clients use are not all among those that it hides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kclient.log import get_logger

if TYPE_CHECKING:
    from kclient.spark.options import SourceOptions

log = get_logger("kclient.spark")

HIDDEN_BY_SPARK: Final = re.compile(r"secret|password|token|access[.]?key|credential", re.IGNORECASE)
"""What `spark.redaction.regex` is by default."""

FOR_EVERYBODY: Final = ("kafka.ssl.truststore.certificates", "kafka.ssl.keystore.certificate.chain")
"""Secrets to our configuration, which treats all of a store alike, but nothing that a certificate does not show."""


def exposed(options: SourceOptions) -> list[str]:
    """The options that hold a secret as text under a name that Spark does not hide."""
    names = [f"kafka.{name}" for name in options.kafka.secrets()]
    if options.registry_auth is not None and not options.registry_auth_reference:
        names.append("schema.registry.auth")
    return [name for name in names if not HIDDEN_BY_SPARK.search(name) and name not in FOR_EVERYBODY]


def warn_of_secrets(options: SourceOptions) -> None:
    """One WARNING for the options that Spark may show."""
    names = exposed(options)
    if names:
        log.warning(
            "%s: Spark may show what these options hold, for spark.redaction.regex does not hide their names by "
            "default. Give references instead, read anew for each connection: %s.file=/path or %s.env=NAME",
            ", ".join(names), names[0], names[0],
        )  # fmt: skip
