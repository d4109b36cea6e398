"""All errors that kclient raises, as one tree.

    KclientError
    ├── ConfigError (ValueError)        unknown key, bad value, refused combination, missing extra
    ├── ArgumentError (ValueError)      a bad argument of a call
    ├── UsageError (RuntimeError)       wrong state or thread
    │   ├── ClosedError · NotAssignedError · UsedAfterForkError · ConcurrentUseError
    ├── WakeupError                     wakeup() ended this call; nothing is lost
    ├── ListenerError                   a rebalance listener raised
    ├── HandlerError                    a record whose handler failed for good (kclient.handlers)
    ├── ConnectError (OSError)          .stage = dns | tcp | tls | sasl | versions | misrouted | metadata | advertised
    │   ├── NameResolutionError         dns
    │   ├── PortClosedError             tcp: refused, no response, reset
    │   ├── OpenFilesLimitError         dns or tcp: no file descriptor is left
    │   ├── TlsError                    tls
    │   │   ├── CertificateError · HostnameMismatchError · PeerSpeaksTlsError · PeerDoesNotSpeakTlsError
    │   ├── AuthenticationError         sasl
    │   ├── VersionError                versions: not Kafka, or no common version
    │   └── AdvertisedListenerError     advertised
    ├── AuthorizationError
    │   ├── TopicAuthorizationError · GroupAuthorizationError
    ├── UnknownTopicError
    ├── OffsetError
    │   ├── OffsetOutOfRangeError · NoOffsetError · LogTruncatedError · DataLossError
    ├── SinkError (OSError)             records could not be written
    ├── CommitFailedError
    ├── DecodeError                     the user's deserializer failed
    ├── ProtocolEncodeError (ValueError)
    ├── CorruptDataError                bytes from the broker
    │   ├── InvalidFrameError · ProtocolDecodeError · BatchTooLargeError · UnsupportedFormatError
    │   ├── CorruptBatchError · TooManyHeadersError
    ├── DeadlineError (TimeoutError)    a call's own timeout
    ├── BrokerError                     any other error code of the wire
    └── InternalError                   a bug in kclient

A text has three sentences: what failed and where, the likely cause, the next step. The details in a text are also
attributes. `kc_code` names the page that `kclient explain` prints. `retriable`: the same call may succeed later.
No text contains a secret, a record's key or a record's value, and every text is printable. All errors pickle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kclient.text import LONGEST_TEXT, printable, printable_lines
from kclient.types import OffsetAndMetadata, TopicPartition


class KclientError(Exception):
    """The base class: `except KclientError` catches every error that kclient raises.

    Details are given by keyword and become attributes; each must be declared by the class.
    """

    kc_code: ClassVar[str] = "KC-900"
    retriable: bool = False

    def __init__(self, text: str, **details: Any) -> None:
        # Only the list of a ConfigError has lines on purpose.
        shown = printable_lines(text) if details.get("problems") else printable(text, LONGEST_TEXT)
        super().__init__(shown)
        for name, value in details.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no attribute {name!r}")
            setattr(self, name, value)

    @property
    def text(self) -> str:
        """The text without the code and the command that explains it."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.args[0]}  [{self.kc_code}] kclient explain {self.kc_code}"


class ConfigError(KclientError, ValueError):
    """The configuration cannot be used. `problems` holds every problem found, one sentence each."""

    kc_code = "KC-601"
    problems: tuple[str, ...] = ()


class ArgumentError(KclientError, ValueError):
    """An argument of a call has the wrong type or is out of range."""

    kc_code = "KC-602"


class UsageError(KclientError, RuntimeError):
    """The call is not possible in this state or from this thread or task."""

    kc_code = "KC-620"


class ClosedError(UsageError):
    """The consumer is closed."""

    kc_code = "KC-621"


class NotAssignedError(UsageError):
    """`partition` is not assigned to this consumer."""

    kc_code = "KC-622"
    partition: TopicPartition | None = None


class UsedAfterForkError(UsageError):
    """The consumer was made in another process. `created_pid` and `pid` name both."""

    kc_code = "KC-623"
    created_pid: int = 0
    pid: int = 0


class ConcurrentUseError(UsageError):
    """Two threads or tasks are inside the consumer. `inside` and `caller` name both."""

    kc_code = "KC-624"
    inside: str = ""
    caller: str = ""


class WakeupError(KclientError):
    """`wakeup()` ended this call. Nothing is lost; the next call continues where this one stopped."""

    kc_code = "KC-460"
    retriable = True


class ListenerError(KclientError):
    """A rebalance listener raised; its exception is the cause. `callback` names the method."""

    kc_code = "KC-440"
    callback: str = ""
    partitions: tuple[TopicPartition, ...] = ()


class HandlerError(KclientError):
    """A handler failed `attempts` times for one record, which is not committed; its last exception is the cause."""

    kc_code = "KC-441"
    topic: str = ""
    partition: int = -1
    offset: int = -1
    attempts: int = 0


class ConnectError(KclientError, OSError):
    """A broker cannot be reached or the connection broke. `stage` is the step that failed."""

    kc_code = "KC-100"
    retriable = True
    stage: str = ""
    host: str = ""
    port: int = 0
    node_id: int | None = None


class NameResolutionError(ConnectError):
    """The host name does not resolve to an address."""

    kc_code = "KC-101"
    stage = "dns"


class PortClosedError(ConnectError):
    """Nothing listens on the port, the peer does not answer, or it closed the connection."""

    kc_code = "KC-102"
    stage = "tcp"


class OpenFilesLimitError(ConnectError):
    """This process, or the whole machine, has no file descriptor left for another connection."""

    kc_code = "KC-108"


class TlsError(ConnectError):
    """The TLS handshake failed."""

    kc_code = "KC-103"
    retriable = False
    stage = "tls"


class CertificateError(TlsError):
    """The broker's certificate is not trusted, or it has expired.

    `names`, `issuer` and `not_after` are fields of the certificate, `authorities` is what it was checked against.
    """

    kc_code = "KC-104"
    names: tuple[str, ...] = ()
    issuer: str = ""
    not_after: str = ""
    authorities: str = ""


class HostnameMismatchError(TlsError):
    """The broker's certificate is for another name. `names` holds the names in it."""

    kc_code = "KC-105"
    names: tuple[str, ...] = ()


class PeerSpeaksTlsError(TlsError):
    """kclient sent plain text and the peer answered with TLS."""

    kc_code = "KC-106"


class PeerDoesNotSpeakTlsError(TlsError):
    """kclient sent a TLS handshake and the peer answered with something else."""

    kc_code = "KC-107"


class AuthenticationError(ConnectError):
    """The broker rejected the credentials, or could not prove that it knows them."""

    kc_code = "KC-201"
    retriable = False
    stage = "sasl"
    mechanism: str = ""


class VersionError(ConnectError):
    """The peer is not a Kafka broker, or client and broker have no version of a request in common."""

    kc_code = "KC-110"
    retriable = False
    stage = "versions"
    api: str = ""


class AdvertisedListenerError(ConnectError):
    """A broker advertises an address that cannot be reached from here. `via` is the bootstrap server that named it."""

    kc_code = "KC-117"
    stage = "advertised"
    advertised: str = ""
    via: str = ""


class AuthorizationError(KclientError):
    """The principal lacks a permission. `needs` says which."""

    kc_code = "KC-202"
    principal: str | None = None
    needs: str = ""


class TopicAuthorizationError(AuthorizationError):
    """Not authorized for `topics`."""

    kc_code = "KC-203"
    topics: tuple[str, ...] = ()


class GroupAuthorizationError(AuthorizationError):
    """Not authorized for `group`."""

    kc_code = "KC-204"
    group: str = ""


class UnknownTopicError(KclientError):
    """The topic, or a partition of it that was asked for, does not exist. `nearest` is an existing name like it."""

    kc_code = "KC-301"
    topic: str = ""
    nearest: str | None = None


class BrokerError(KclientError):
    """Any other error code of a response: `code` is its number, `name` its name in the protocol."""

    kc_code = "KC-450"
    code: int = -1
    name: str = ""


class OffsetError(KclientError):
    """A partition has no usable position. `partitions` names all of them."""

    kc_code = "KC-401"
    partitions: tuple[TopicPartition, ...] = ()


class OffsetOutOfRangeError(OffsetError):
    """The log no longer has the offset, or does not have it yet. `positions` maps each partition to its offset.

    If the error is about one partition, `partition`, `position` and the offsets of its log are set too.
    """

    kc_code = "KC-402"
    partition: TopicPartition | None = None
    position: int | None = None
    positions: Mapping[TopicPartition, int] = {}
    log_start: int | None = None
    log_end: int | None = None
    missing: int | None = None


class NoOffsetError(OffsetError):
    """No offset is committed, and `on_no_committed_offset` is error, so there is no starting position."""

    kc_code = "KC-403"


class LogTruncatedError(OffsetOutOfRangeError):
    """Records that were consumed are no longer in the log. `divergent` is where each log departs from what was read."""

    kc_code = "KC-404"
    divergent: Mapping[TopicPartition, OffsetAndMetadata | None] = {}


class DataLossError(OffsetError):
    """A planned range of offsets is no longer there (Spark source). `kind` is the name of Spark's own source for it."""

    kc_code = "KC-701"
    kind: str = ""


class SinkError(KclientError, OSError):
    """Records could not be written to `path`: no space, no permission, no directory."""

    kc_code = "KC-710"
    path: str = ""


class CommitFailedError(KclientError):
    """A commit was not stored. `reason` is one word, `uncommitted` the offsets that were not committed.

    If the member was removed from the group: `since_poll_ms`, the milliseconds since its last poll, and both settings.
    """

    kc_code = "KC-420"
    reason: str = ""
    uncommitted: Mapping[TopicPartition, OffsetAndMetadata] = {}
    since_poll_ms: int | None = None
    max_poll_interval_ms: int | None = None
    max_poll_records: int | None = None


class DecodeError(KclientError):
    """The user's deserializer raised; its exception is the cause. The position stays on this record."""

    kc_code = "KC-501"
    topic: str = ""
    partition: int = -1
    offset: int = -1
    timestamp: int = -1
    headers: Sequence[tuple[str, bytes | None]] = ()
    raw_key: bytes | None = None
    raw_value: bytes | None = None
    part: str = ""

    def __repr__(self) -> str:
        size = None if self.raw_value is None else len(self.raw_value)
        place = f"{self.topic}-{self.partition}@{self.offset}"
        return f"DecodeError({place}, part={self.part!r}, value_size={size})"


class ProtocolEncodeError(KclientError, ValueError):
    """A message cannot be written in this version."""

    kc_code = "KC-502"
    message: str = ""
    version: int = -1
    field: str = ""


class CorruptDataError(KclientError):
    """Bytes from the broker are invalid."""

    kc_code = "KC-510"


class InvalidFrameError(CorruptDataError):
    """A frame's size is negative, too small or above the maximum; the connection is closed."""

    kc_code = "KC-511"
    size: int = 0
    limit: int = 0


class ProtocolDecodeError(CorruptDataError):
    """A message cannot be read: `field` is the path, `offset` the byte within the message's buffer."""

    kc_code = "KC-512"
    message: str = ""
    version: int = -1
    field: str = ""
    offset: int = 0


class _AboutBatch:
    """The attributes of errors about one record batch."""

    topic: str | None = None
    partition: int | None = None
    base_offset: int = -1
    next_offset: int | None = None


class CorruptBatchError(_AboutBatch, CorruptDataError):
    """A record batch is damaged. Seek to `next_offset` to go past it."""

    kc_code = "KC-513"


class TooManyHeadersError(CorruptBatchError):
    """The record at `offset` claims `count` headers, more than `limit`: max_headers_per_record."""

    kc_code = "KC-516"
    offset: int = -1
    count: int = 0
    limit: int = 0


class BatchTooLargeError(_AboutBatch, CorruptDataError):
    """A batch, or its decompressed form, is larger than `limit` bytes."""

    kc_code = "KC-514"
    limit: int = 0


class UnsupportedFormatError(_AboutBatch, CorruptDataError):
    """A record format or codec that kclient cannot read."""

    kc_code = "KC-515"
    magic: int | None = None
    codec: int | None = None


class DeadlineError(KclientError, TimeoutError):
    """The call's own timeout passed. `waiting_for` says what was missing, `timeout` is in seconds."""

    kc_code = "KC-470"
    retriable = True
    waiting_for: str = ""
    timeout: float = 0.0


class InternalError(KclientError):
    """A broken invariant of kclient: a bug. Please report it with the text."""

    kc_code = "KC-901"

    @classmethod
    def of(cls, what: str, problem: BaseException) -> InternalError:
        """Return the error for `what`, which failed with an unexpected exception; that becomes the cause."""
        bug = cls(f"{what} failed: {problem!r}. This is a bug of kclient. Please report it.")
        bug.__cause__ = problem
        return bug
