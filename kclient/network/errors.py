"""The typed errors of connections, one function per cause. Each text has place, time, cause and next step."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from kclient.errors import (
    AdvertisedListenerError,
    BrokerError,
    ConnectError,
    DeadlineError,
    GroupAuthorizationError,
    KclientError,
    NameResolutionError,
    OpenFilesLimitError,
    PeerSpeaksTlsError,
    PortClosedError,
    TopicAuthorizationError,
    VersionError,
)
from kclient.network.peer import Peer
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, error
from kclient.text import format_names, printable

OPEN_FILES_LIMITS: Final = frozenset({errno.EMFILE, errno.ENFILE})
MISROUTED: Final = "misrouted"  # stage of the error
TLS_RECORD_STARTS = (b"\x15\x03", b"\x16\x03")  # an alert, or a handshake message


def name_not_resolved(peer: Peer, seconds: float, cause: Exception) -> NameResolutionError:
    """Return the error for a host name without an address."""
    return NameResolutionError(
        f"{peer}: the name {peer.host!r} does not resolve ({_reason(cause)}; {seconds:.2f} s). "
        "It is misspelt, or only known in another network. "
        f"Try it on this machine: getent hosts {shlex.quote(printable(peer.host))}",
        **where(peer),
    )


def open_files_limit(peer: Peer, seconds: float, cause: OSError, stage: str) -> OpenFilesLimitError:
    """Return the error for a failed socket() or resolver call: no file descriptor is left."""
    subject = "This machine has" if cause.errno == errno.ENFILE else "This process has"
    return OpenFilesLimitError(
        f"{peer}: no file descriptor is left for a connection ({_reason(cause)}; {seconds:.2f} s). "
        f"{subject} too many files and sockets open: they are not closed, or the limit is too small. "
        "Look at the open files in /proc/self/fd or with lsof, or raise the limit (ulimit -n).",
        **where(peer, stage),
    )


def not_connected(peer: Peer, seconds: float, cause: Exception) -> PortClosedError:
    """Return the error for a TCP connection that the operating system could not open."""
    refused = isinstance(cause, ConnectionRefusedError)
    why = "Nothing listens on that port." if refused else "The host or the network to it is down."
    return PortClosedError(
        f"{peer}: no connection after {seconds:.2f} s ({_reason(cause)}). {why} "
        f"Check that the broker runs and that {peer.address} is the listener for this kind of client.",
        **where(peer),
    )


def no_response(peer: Peer, seconds: float, stage: str) -> PortClosedError:
    """Return the error for the setup timeout: no TCP connection (stage tcp) or no response on it (versions)."""
    what, why = "accepted no connection", "A firewall drops the packets, or the host is down."
    if stage != "tcp":
        what, why = (
            "accepted the connection and then sent nothing",
            "It is not a Kafka broker, or the broker is overloaded.",
        )
    return PortClosedError(
        f"{peer} {what} for {seconds:.2f} s. {why} "
        f"Check {peer.address}; slow networks need a larger socket_connection_setup_timeout_ms.",
        **where(peer, stage),
    )


def closed_early(peer: Peer, seconds: float, tls: bool = False) -> PortClosedError:
    """Return the error for a peer that accepted the connection and closed it before its first response."""
    check = "Check that the listener does not use TLS"
    if tls:
        check = "Check whether the listener requires a client certificate, and whether it is a Kafka listener"
    return PortClosedError(
        f"{peer} closed the connection after {seconds:.2f} s without answering ApiVersions. "
        "The broker is starting or stopping, its connection limit is reached, or the port speaks another protocol. "
        f"{check}, and the broker's log.",
        **where(peer, "versions"),
    )


def lost(peer: Peer, waiting_for: str, why: str) -> PortClosedError:
    """Return the error for an established connection that ended, or that kclient closed because of `why`."""
    return PortClosedError(
        f"{peer}: the connection ended while {waiting_for} ({why}). "
        "The broker stopped or restarted, or the network failed. "
        "kclient reconnects automatically; if this repeats, look at the broker's log.",
        **where(peer),
    )


def not_sent_in_time(peer: Peer, name: str) -> DeadlineError:
    """Return the error for a request whose deadline passed before it could be sent on the connection."""
    return DeadlineError(
        f"{peer}: {name} could not be sent before its deadline. The broker throttles this client or answers slowly. "
        "Ask for less, or raise request_timeout_ms.",
        waiting_for="a turn on the connection",
    )


def no_connection(peer: Peer, name: str, timeout: float) -> DeadlineError:
    """Return the error for a request whose timeout passed before a connection was open."""
    return DeadlineError(
        f"{peer}: no connection for {name} within {timeout} s. The broker is down or cannot be reached. "
        "Look for WARNINGs of kclient.connection, which name the cause.",
        waiting_for=f"a connection to {peer}",
        timeout=timeout,
    )


def not_kafka(peer: Peer, seconds: float, start: bytes) -> VersionError | PeerSpeaksTlsError:
    """Return the error for a peer whose first bytes are not Kafka's: TLS, HTTP or another protocol."""
    if start.startswith(TLS_RECORD_STARTS):
        return speaks_tls(peer, seconds)
    what = "an HTTP server" if start == b"HTTP" else "another protocol"
    return VersionError(
        f"{peer} is not Kafka: its response began with {start!r} ({seconds:.2f} s). The port belongs to {what}. "
        "Give the port of a Kafka listener, 9092 by default, in bootstrap_servers.",
        api="ApiVersions",
        **where(peer, "versions"),
    )


def speaks_tls(peer: Peer, seconds: float) -> PeerSpeaksTlsError:
    """Return the error for a plain-text connection to a TLS listener."""
    return PeerSpeaksTlsError(
        f"{peer} speaks TLS, and this connection is plain text ({seconds:.2f} s). The port is a TLS listener. "
        "Set security_protocol to SSL or SASL_SSL, or give the port of a listener without TLS.",
        **where(peer),
    )


def bad_versions(peer: Peer, reason: str) -> VersionError:
    """Return the error for an ApiVersions response that is inconsistent or violates the protocol."""
    return VersionError(
        f"{peer}: ApiVersions failed: {reason}. It is not Kafka, or a broker that is too old or damaged. "
        "Check the address and the broker's release (0.10 or later).",
        api="ApiVersions",
        **where(peer, "versions"),
    )


def no_common_version(
    peer: Peer, api: str, ours: tuple[int, int], theirs: tuple[int, int] | None
) -> VersionError:
    """Return the error for a request that client and broker have no usable version in common for."""
    offer = "does not offer it" if theirs is None else f"offers versions {theirs[0]} to {theirs[1]}"
    return VersionError(
        f"{peer}: {api} is needed in version {ours[0]} to {ours[1]}, and the broker {offer}. "
        "The broker is too old or too new for this request. "
        "Use a broker release that has it, or do not use the feature that needs it.",
        api=api,
        **where(peer, "versions"),
    )


def unknown_node(node_id: int) -> ConnectError:
    """Return the error for a request to a broker that is not in the metadata."""
    return ConnectError(
        f"node {node_id} is not in the cluster's metadata. It was removed or added just now. "
        "A metadata update was requested; try again.",
        stage="metadata",
        node_id=node_id,
    )


def no_brokers(via: str) -> ConnectError:
    """Return the error for a Metadata response without a usable broker."""
    return ConnectError(
        f"{via} answered a metadata request without any usable broker. The cluster is starting or has lost its quorum. "
        "kclient retries; if this persists, look at the broker's log.",
        stage="metadata",
    )


def rebootstrap_required() -> ConnectError:
    """Return the error for a broker that asks the client to rebootstrap (KIP-1102)."""
    return ConnectError(
        "a broker answered a metadata request with REBOOTSTRAP_REQUIRED (129). The known addresses now belong to "
        "another cluster. kclient asks the bootstrap servers again, unless metadata_recovery_strategy "
        "is none; if this persists, check what their names resolve to.",
        stage="metadata",
    )


def misrouted(peer: Peer, cluster_id: str | None) -> ConnectError:
    """Return the error for a broker whose node or cluster id differs from the metadata (KIP-1242)."""
    return ConnectError(
        f"{peer} is not that node of cluster {printable(str(cluster_id))} (REBOOTSTRAP_REQUIRED, 129). "
        "Its address has belonged to another broker since the metadata was read, or a proxy mixes brokers up. "
        "kclient asks the bootstrap servers again; "
        "if this persists, check the names in advertised.listeners and what they resolve to, or set "
        "metadata_cluster_check_enable to false.",
        **where(peer, MISROUTED),
    )


def names_not_resolved(peers: Sequence[Peer], timeout: float, cause: Exception | None) -> NameResolutionError:
    """Return the final error for bootstrap servers that did not resolve within `bootstrap_resolve_timeout_ms`."""
    names = format_names([repr(peer.host) for peer in peers])
    why = "the resolver did not answer" if cause is None else _reason(cause)
    return NameResolutionError(
        f"bootstrap_servers: none of {names} resolved within {timeout:g} s, which bootstrap_resolve_timeout_ms allows "
        f"({why}). They are misspelt, only known in another network, or the resolver is down. "
        "Correct that, close this client and open a new one.",
        retriable=False,
        **where(peers[0]),
    )


def advertised_wrongly(peer: Peer, via: str, cause: ConnectError) -> AdvertisedListenerError:
    """Return the error for an advertised address that does not work from this machine."""
    reason = (
        "this machine cannot resolve" if isinstance(cause, NameResolutionError) else "does not answer here"
    )
    return AdvertisedListenerError(
        f"node {peer.node_id} is advertised as {peer.address}, which {reason} (reached through {via}): {cause.text} "
        "Either the broker is down, or its advertised.listeners lacks a listener for clients outside its network. "
        f"Add one whose address works from this machine, or make {peer.host!r} resolve to the broker.",
        advertised=peer.address,
        via=via,
        **where(peer, cause.stage),
    )


def _reason(cause: Exception) -> str:
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"  # the loop's own text repeats the address
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__


def where(peer: Peer, stage: str | None = None) -> dict[str, str | int | None]:
    """Return the attributes of a ConnectError about this peer."""
    place: dict[str, str | int | None] = {"host": peer.host, "port": peer.port, "node_id": peer.node_id}
    return place if stage is None else {**place, "stage": stage}


LONGEST_EXPLANATION: Final = 1_000
MOST_NAMES: Final = 20

ADVICE = {
    -1: "The broker's log contains more; if the code is new, a newer kclient may know it.",
    17: "A topic's name has 1 to 249 letters, digits, '.', '_' or '-', and is not '.' or '..'. Correct the name, "
    "or give a pattern as subscribe(pattern=…).",
    24: "Set group_id to a name that is not empty.",
    26: "Choose session_timeout_ms between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
    81: "The group has as many members as the broker's group.max.size allows; raise that or start fewer members.",
    82: "Another consumer runs with the same group_instance_id; give every member its own.",
    111: "Another consumer with the same group_instance_id is still a member; give every member its own, "
    "or wait until that member has left or its session has timed out.",
    112: "Set group_remote_assignor to an assignor in the broker's group.consumer.assignors, or do not set it.",
    128: "A SubscriptionPattern is written in the syntax of RE2/J, without lookaround and backreferences. Correct it.",
    23: "All members of a group must share one assignor; compare partition_assignment_strategy of all members.",
}
RETRY_ADVICE = "In a healthy cluster this is temporary; if it persists, look at the broker's log."
GENERAL_ADVICE = "Look at the broker's log at this moment; the same request will be refused again."


def broker_error(
    code: int,
    doing: str,
    *,
    topic: str | None = None,
    topics: Iterable[str] | None = None,
    group: str | None = None,
    message: str | None = None,
    principal: str | None = None,
    retriable: bool | None = None,
) -> KclientError:
    """Return the typed error for an error code that ended `doing`, the operation ("committing offsets of group g").

    Codes 29 and 30 give the authorization errors, every other code a BrokerError with `code`, `name`, `retriable`.
    `message` is the broker's error message. `retriable` defaults to Kafka's property of the code; pass False
    if this request does not retry it.
    """
    known = error(code)
    quoted = f': "{printable(message, LONGEST_EXPLANATION)}"' if message else ""
    text = f"{doing} was refused with {known.name} ({code}){quoted}."
    names = tuple(sorted(topics)) if topics is not None else (() if topic is None else (topic,))
    if code == TOPIC_AUTHORIZATION_FAILED:
        needs = (
            " and ".join(f"READ on Topic:{printable(name)}" for name in names[:MOST_NAMES])
            or "READ on the topic"
        )
        return TopicAuthorizationError(
            f"{text} The principal of this connection lacks a permission. Grant it {needs}.",
            topics=names,
            needs=needs,
            principal=principal,
        )
    if code == GROUP_AUTHORIZATION_FAILED:
        needs = f"READ on Group:{group}" if group else "READ on the group"
        return GroupAuthorizationError(
            f"{text} The principal of this connection lacks a permission. Grant it {needs}.",
            group=group or "",
            needs=needs,
            principal=principal,
        )
    retriable = known.retriable if retriable is None else retriable
    advice = ADVICE.get(code, RETRY_ADVICE if retriable else GENERAL_ADVICE)
    return BrokerError(f"{text} {advice}", code=code, name=known.name, retriable=retriable)
