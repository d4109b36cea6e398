"""`kclient doctor`: from the settings to the permissions of a group, each step with its time and what is wrong.

    config        the settings                                           nothing is sent before this is ok
    names         each bootstrap server: its name → addresses
    ports         a TCP connection to each address
    tls           the handshake and the certificate                      with security.protocol SSL or SASL_SSL
    versions      ApiVersions: is the peer a Kafka broker?
    login         SASL, as whom                                          with SASL_PLAINTEXT or SASL_SSL
    metadata      the cluster's id and its brokers
    advertised    a connection to every broker at the address that it advertises
    topic         does it exist, has each partition a leader, may this client read it?         with --topic
    group         its coordinator and state, may this client join it?                          with --group

What cannot be looked at after a failure is skipped. Nothing is changed: no topic is created, no group is joined.
"""

from __future__ import annotations

import asyncio
import json as json_form
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

import attrs
from cyclopts import Parameter

from kclient.cli.exit_codes import OK, exit_code
from kclient.cli.options import ConnectionOptions, flag, option
from kclient.config import Config
from kclient.errors import (
    AdvertisedListenerError,
    ConnectError,
    KclientError,
    PortClosedError,
    UnknownTopicError,
)
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.group.coordinator import Coordinator, VersionedRequest, expect, request_until_answered
from kclient.lag.measure import limit_time
from kclient.network.cluster import Cluster, connection_settings
from kclient.network.connect import (
    PROBE_SECONDS,
    answers_plain,
    answers_tls,
    open_connection,
    require_no_sasl,
    resolve,
)
from kclient.network.connection import Connection
from kclient.network.errors import advertised_wrongly, broker_error, not_connected, speaks_tls
from kclient.network.metadata import MetadataCache
from kclient.network.peer import Peer, parse_servers
from kclient.network.sasl import authenticator_of
from kclient.network.tls import does_not_speak_tls
from kclient.protocol import errors as codes
from kclient.runtime import Address, Runtime
from kclient.text import LONGEST_TEXT, format_count, printable

MOST_CONNECTED: Final = 100
MOST_FAILED: Final = 10
"""Advertised brokers that are connected to, one after another; each failure may take the time of a connection."""

READ: Final = 3  # the bit of an operation in authorized operations (KIP-430)
DESCRIBE: Final = 8
NOT_SAID: Final = -(1 << 31)
WITHOUT_NOT_FOUND: Final = 5  # of DescribeGroups: version 6 answers GROUP_ID_NOT_FOUND, without operations

Verdict = Literal["ok", "FAIL", "skipped"]


@attrs.frozen
class DoctorStep:
    """The result of one step: what was seen, and the time in seconds, None if nothing was done."""

    name: str
    verdict: Verdict
    saw: str
    seconds: float | None = None
    error: KclientError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return one line of `--json`; keys are only ever added to it."""
        return {
            "step": self.name,
            "verdict": self.verdict,
            "saw": self.saw,
            "ms": None if self.seconds is None else round(self.seconds * 1000, 3),
            "error": None if self.error is None else type(self.error).__name__,
            "code": None if self.error is None else self.error.kc_code,
        }

    def line(self) -> str:
        """Return the line for people."""
        took = "" if self.seconds is None else f"{self.seconds * 1000:,.0f} ms"
        return f"{self.verdict:<8} {self.name:<11} {took:>9}  {printable(' '.join(self.saw.split()), LONGEST_TEXT)}"


def doctor(
    *,
    topic: Annotated[str | None, option("a topic that a consumer shall read", "TOPIC")] = None,
    group: Annotated[str | None, option("a group that it shall join", "GROUP")] = None,
    json: Annotated[bool, flag("one JSON object on a line for each step")] = False,
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
) -> int:
    """Find out why a cluster cannot be used: names, ports, TLS, login, permissions, each step with its time.

    It changes nothing. It ends with the exit code of the first step that failed. `kclient spark doctor` checks this
    machine for Spark.
    """
    failed: list[KclientError] = []

    def report(step: DoctorStep) -> None:
        if step.error is not None:
            failed.append(step.error)
        sys.stdout.write((json_form.dumps(step.to_json()) if json else step.line()) + "\n")
        sys.stdout.flush()

    try:
        config = connection.config(group_id=group)
    except KclientError as exc:
        report(DoctorStep("config", "FAIL", str(exc), error=exc))
    else:
        shown = f"{config.security_protocol} to {','.join(config.bootstrap_servers)}"
        report(DoctorStep("config", "ok", shown))
        asyncio.run(_run(config, topic, group, report))
    return exit_code(failed[0]) if failed else OK


async def _run(
    config: Config, topic: str | None, group: str | None, report: Callable[[DoctorStep], None]
) -> None:
    runtime = Runtime()
    examination = Examination(attrs.evolve(config, allow_auto_create_topics=False), runtime, report)
    try:
        await examination.run(topic, group)
    finally:
        await examination.close()


class Examination:
    """Goes through the steps, and reports each."""

    def __init__(self, config: Config, runtime: Runtime, report: Callable[[DoctorStep], None]) -> None:
        self._config = config
        self._runtime = runtime
        self._report = report
        self._authenticator = authenticator_of(config, runtime)
        self._login_seconds = 0.0
        self._timeout = config.socket_connection_setup_timeout_max_ms / 1000
        self._cluster: Cluster | None = None
        settings = connection_settings(config, self._authenticator, MetadataCache())
        self._settings = attrs.evolve(
            settings, authenticate=None if settings.authenticate is None else self._timed_login
        )

    async def run(self, topic: str | None, group: str | None) -> None:
        """Go through all steps."""
        names = ["metadata", "advertised", *(["topic"] if topic else []), *(["group"] if group else [])]
        found = [await self._bootstrap(peer) for peer in parse_servers(self._config.bootstrap_servers)]
        connections = [one for one in found if one is not None]
        try:
            if not connections or not await self._metadata(connections[0]):
                self._skip(names if not connections else names[1:])
                return
        finally:
            for connection in connections:
                connection.close()
        cluster = self._cluster = Cluster(self._config, self._runtime)
        try:
            await cluster.start()
        except KclientError:  # the step before has reported why
            self._skip(names[2:])
            return
        if topic is not None:
            await self._step("topic", lambda: self._topic(cluster, topic))
        if group is not None:
            await self._step("group", lambda: self._group(cluster, group))

    async def close(self) -> None:
        """Close all connections."""
        if self._cluster is not None:
            await self._cluster.close(1.0)
        if self._authenticator is not None:
            await self._authenticator.close(1.0)

    # --- how a step is reported

    async def _step(self, name: str, work: Callable[[], Awaitable[str]]) -> bool:
        """Report what `work` returns or raises, with the time that it took; return whether it is ok."""
        began = self._runtime.now()
        try:
            saw = await work()
        except KclientError as exc:
            self._report(DoctorStep(name, "FAIL", str(exc), self._runtime.now() - began, exc))
            return False
        self._report(DoctorStep(name, "ok", saw, self._runtime.now() - began))
        return True

    def _skip(self, names: Sequence[str]) -> None:
        for name in names:
            self._report(DoctorStep(name, "skipped", "a step before it failed"))

    # --- one bootstrap server

    async def _bootstrap(self, peer: Peer) -> Connection | None:
        """Go from the name to a connection that is ready; return it, None if a step failed."""
        addresses: list[Address] = []

        async def names() -> str:
            addresses.extend(await resolve(peer, self._runtime))
            return f"{peer.host} → {', '.join(one.ip for one in addresses)}"

        if not await self._step("names", names):
            self._skip(self._steps(after="names"))
            return None
        reached = [one for one in addresses if await self._step("ports", partial(self._port, peer, one))]
        if not reached:
            self._skip(self._steps(after="ports"))
            return None
        return await self._handshake(attrs.evolve(peer, ip=reached[0].ip))

    def _steps(self, after: str) -> list[str]:
        """Return the steps of one server that come after this one."""
        all_steps = ["names", "ports"]
        all_steps += ["tls"] if self._settings.tls is not None else []
        all_steps += ["versions"]
        all_steps += ["login"] if self._settings.authenticate is not None else []
        return all_steps[all_steps.index(after) + 1 :]

    async def _port(self, peer: Peer, address: Address) -> str:
        began = self._runtime.now()
        try:
            async with asyncio.timeout(self._timeout):
                transport, _ = await self._runtime.connect(asyncio.Protocol, address)
        except OSError as exc:  # a timeout is one
            raise not_connected(attrs.evolve(peer, ip=address.ip), self._runtime.now() - began, exc) from exc
        transport.abort()
        return f"{address.ip}:{address.port} is open"

    async def _handshake(self, peer: Peer) -> Connection | None:
        """Report TLS, versions and login of one connection. What fails is named by the stage of the error."""
        began = self._runtime.now()
        error: KclientError | None = None
        connection: Connection | None = None
        self._login_seconds = 0.0
        try:
            connection = await self._open(peer)
        except KclientError as exc:
            error = exc
        took = self._runtime.now() - began - self._login_seconds
        stage = getattr(error, "stage", "")
        failed = (
            None if error is None else {"tls": "tls", "sasl": "login", "tcp": "tls"}.get(stage, "versions")
        )
        steps = self._steps(after="ports")
        if failed is not None and failed not in steps:
            failed = "versions"  # a plain-text client at a TLS port, or one without SASL where it is required
        for number, name in enumerate(steps):
            seconds = self._login_seconds if name == "login" else took if name == steps[0] else None
            if name == failed:
                self._report(DoctorStep(name, "FAIL", str(error), seconds, error))
                self._skip(steps[number + 1 :])
                return None
            self._report(DoctorStep(name, "ok", self._seen(name, connection), seconds))
        return connection

    async def _open(self, peer: Peer) -> Connection:
        """Return a connection that is ready. Raise a ConnectError that names the cause, as a consumer's does."""
        began = self._runtime.now()
        tls = self._settings.tls is not None
        try:
            return await open_connection(peer, self._settings, self._runtime, self._timeout, _ignore)
        except PortClosedError as exc:
            if not tls and exc.stage == "versions" and await answers_tls(peer, self._runtime):
                raise speaks_tls(peer, self._runtime.now() - began) from exc
            if tls and exc.stage == "tls" and await answers_plain(peer, self._settings, self._runtime):
                raise does_not_speak_tls(peer, self._runtime.now() - began) from exc
            raise

    async def _require_no_sasl(self, peer: Peer) -> None:
        """Raise AuthenticationError if this listener closes connections without a login."""
        if self._settings.authenticate is None:
            connection = await self._open(peer)
            await require_no_sasl(connection, self._runtime.now() + PROBE_SECONDS)
            connection.close()

    def _seen(self, name: str, connection: Connection | None) -> str:
        if name == "tls":
            verified = self._settings.tls is not None and self._settings.tls.options.verify
            return (
                "the certificate is trusted" if verified else "encrypted, but the certificate is NOT verified"
            )
        if name == "login":
            return f"{self._config.sasl_mechanism} is accepted"
        return "a Kafka broker" + (f", {len(connection.offered)} APIs" if connection is not None else "")

    async def _timed_login(self, channel: Any) -> float | None:
        """Log in, and add up the time."""
        assert self._authenticator is not None  # noqa: S101 – else this is not called
        began = self._runtime.now()
        try:
            return await self._authenticator(channel)
        finally:
            self._login_seconds += self._runtime.now() - began

    # --- the cluster

    async def _metadata(self, connection: Connection) -> bool:
        """Report the cluster and its brokers; return whether all of them can be used."""
        brokers: list[Peer] = []

        async def metadata() -> str:
            request = MetadataRequest(topics=[])
            deadline = self._runtime.now() + self._config.request_timeout_ms / 1000
            version = connection.version_for(MetadataRequest)
            try:
                response = expect(MetadataResponse, await connection.request(request, version, deadline))
            except PortClosedError:
                await self._require_no_sasl(connection.peer)
                raise
            brokers.extend(Peer(one.host, one.port, one.node_id) for one in response.brokers)
            if not brokers:
                raise ConnectError(
                    f"{connection.peer} names no broker in its metadata. The cluster is starting, or has no quorum. "
                    "Look at the brokers' logs.",
                    stage="metadata",
                )
            return f"cluster {response.cluster_id or '-'}, {format_count(len(brokers), 'broker')}"

        if not await self._step("metadata", metadata):
            return False
        via = connection.peer
        return await self._connect_to_each(brokers, via)

    async def _connect_to_each(self, brokers: Sequence[Peer], via: Peer) -> bool:
        """Report a connection to each broker, up to limits, since a peer has named them; return whether one works."""
        usable = failed = 0
        for number, one in enumerate(brokers):
            if number >= MOST_CONNECTED or failed >= MOST_FAILED:
                left = format_count(len(brokers) - number, "more broker")
                why = f"{failed} have failed" if failed >= MOST_FAILED else f"{number} were"
                self._report(DoctorStep("advertised", "skipped", f"{left} not connected to: {why}"))
                break
            if await self._step("advertised", partial(self._advertised, one, via)):
                usable += 1
            else:
                failed += 1
        return usable > 0

    async def _advertised(self, peer: Peer, via: Peer) -> str:
        try:
            [address, *_] = await resolve(peer, self._runtime)
            at = attrs.evolve(peer, ip=address.ip)
            connection = await self._open(at)
        except AdvertisedListenerError:
            raise
        except ConnectError as exc:
            raise advertised_wrongly(peer, via.address, exc) from exc
        connection.close()
        return f"node {peer.node_id} = {peer.address}"

    # --- what a consumer needs

    async def _topic(self, cluster: Cluster, name: str) -> str:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        _, response = await cluster.request_any(request, min_version=4)
        topics = expect(MetadataResponse, response).topics
        absent = MetadataResponseTopic(name=name, error_code=codes.UNKNOWN_TOPIC_OR_PARTITION)
        topic = topics[0] if topics else absent
        if topic.error_code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopicError(
                f"There is no topic {name!r}, or this client may not describe it. The name may be wrong. "
                "Create it, or grant DESCRIBE and READ on it.",
                topic=name,
            )
        if topic.error_code != codes.NONE:
            raise broker_error(topic.error_code, f"Describing topic {name}", topics=[name])
        return self._readable(topic, name)

    def _readable(self, topic: MetadataResponseTopic, name: str) -> str:
        """Return what was seen of a topic that exists. Raise AuthorizationError, or ConnectError without a leader."""
        without = [row.partition_index for row in topic.partitions if row.leader_id < 0]
        if without:
            raise ConnectError(
                f"{format_count(len(without), 'partition')} of topic {name} without a leader: {without[0]} for one. "
                "Their brokers are down. Look at the brokers.",
                stage="metadata",
            )
        operations = topic.topic_authorized_operations
        if operations != NOT_SAID and not operations >> READ & 1:
            raise broker_error(codes.TOPIC_AUTHORIZATION_FAILED, f"Reading topic {name}", topics=[name])
        said = "may be read" if operations != NOT_SAID else "the broker does not say whether it may be read"
        return f"{name} has {format_count(len(topic.partitions), 'partition')}, {said}"

    async def _group(self, cluster: Cluster, group_id: str) -> str:
        coordinator = Coordinator(cluster, group_id, self._config, self._runtime)
        seconds = self._config.default_api_timeout_ms / 1000
        request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=True)
        try:
            async with limit_time(seconds, f"the description of group {group_id}"):
                response = await request_until_answered(
                    coordinator,
                    DescribeGroupsResponse,
                    VersionedRequest(request, 0, WITHOUT_NOT_FOUND),
                    code_of=lambda one: _group_in(one).error_code,
                    config=self._config,
                    runtime=self._runtime,
                )
                node = await coordinator.ensure()
        finally:
            await coordinator.close()
        group = _group_in(response)
        if group.error_code != codes.NONE:
            raise broker_error(group.error_code, f"Describing group {group_id}", group=group_id)
        operations = group.authorized_operations
        if operations != NOT_SAID and not operations >> READ & 1:
            raise broker_error(codes.GROUP_AUTHORIZATION_FAILED, f"Joining group {group_id}", group=group_id)
        said = (
            "may be joined" if operations != NOT_SAID else "the broker does not say whether it may be joined"
        )
        return f"{group_id} is coordinated by node {node}, {said}"


def _group_in(response: DescribeGroupsResponse) -> DescribedGroup:
    return response.groups[0] if response.groups else DescribedGroup(error_code=codes.GROUP_ID_NOT_FOUND)


def _ignore(connection: Connection, error: KclientError | None) -> None:
    """Do nothing when a connection closes."""
