"""Exit codes, the same for every command.

0 ok · 1 a bug of kclient, or an error without its own number · 2 usage or configuration · 3 no broker can be reached
4 authentication or authorization · 5 not found · 6 data · 7 what the brokers advertise · 8 output · 130 interrupted
"""

from __future__ import annotations

from typing import Final

from kclient import errors
from kclient.protocol.errors import GROUP_ID_NOT_FOUND

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CONNECT: Final = 3
NOT_ALLOWED: Final = 4
NOT_FOUND: Final = 5
DATA: Final = 6
BROKERS: Final = 7
OUTPUT: Final = 8
INTERRUPTED: Final = 130

# The first kind that fits decides.
_EXITS: Final[tuple[tuple[type[errors.KclientError], int], ...]] = (
    (errors.AuthenticationError, NOT_ALLOWED),
    (errors.AuthorizationError, NOT_ALLOWED),
    (errors.AdvertisedListenerError, BROKERS),
    (errors.ConnectError, CONNECT),
    (errors.DeadlineError, CONNECT),
    (errors.ConfigError, USAGE),
    (errors.ArgumentError, USAGE),
    (errors.UsageError, USAGE),
    (errors.UnknownTopicError, NOT_FOUND),
    (errors.NoOffsetError, USAGE),
    (errors.OffsetError, DATA),
    (errors.DecodeError, DATA),
    (errors.CorruptDataError, DATA),
    (errors.SinkError, OUTPUT),
)


def exit_code(error: errors.KclientError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, errors.BrokerError) and error.code == GROUP_ID_NOT_FOUND:
        return NOT_FOUND
    return next((number for kind, number in _EXITS if isinstance(error, kind)), FAILED)
