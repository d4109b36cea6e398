"""`python -m kclient.embedded`: a stand-alone cluster that runs until it is interrupted.

The bootstrap servers go to standard output, everything else to standard error, so that a script may read the first
line. Commands are read from standard input, one a line: `kill 2`, `restart 2`, `topic orders 6`, `produce orders hello`
and so on. `--flights` puts invented records into it (`flights.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Final, TextIO

from kclient.config.oauth import is_loopback
from kclient.embedded.cluster import EmbeddedCluster
from kclient.embedded.control.brokers import HIGHEST_PORT
from kclient.embedded.control.topics import find_topic
from kclient.embedded.flights import PARTITIONS, TOPIC, Flights
from kclient.embedded.listener import MECHANISMS, PLAINTEXT, Listener
from kclient.embedded.observer import Observer
from kclient.embedded.releases import KNOWN
from kclient.errors import ArgumentError, InternalError, KclientError
from kclient.runtime import Runtime
from kclient.text import format_count, printable

BUG_EXIT: Final = 1
USAGE_EXIT: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Return 0 then, 2 for invalid arguments, 1 after an internal error."""
    _open_streams()
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.port + given.brokers - 1 > HIGHEST_PORT:
        parser.error(
            f"argument --port: {given.brokers} brokers from {given.port} on need ports over {HIGHEST_PORT}"
        )
    if given.rate and not given.flights:
        parser.error("argument --rate: it is of --flights, which is missing")
    try:
        asyncio.run(_serve(given))
    except InternalError as exc:
        parser.exit(BUG_EXIT, f"{parser.prog}: {exc}\n")
    except (KclientError, OSError) as exc:
        parser.exit(USAGE_EXIT, f"{parser.prog}: error: {exc}\n")
    return 0


def _open_streams() -> None:
    """Replace standard streams that the parent process closed, as for a service."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kclient.embedded",
        description="A Kafka cluster in one process, without Java: real protocol, real sockets, nothing kept on disk. "
        "Prints the bootstrap servers and serves until interrupted.",
        epilog=f"While it runs it takes commands on standard input, one a line: {COMMANDS}.",
    )
    add = parser.add_argument
    add("--brokers", type=_positive, default=1, metavar="N", help="how many (default 1)")
    add(
        "--topic",
        action="append",
        default=[],
        type=_topic,
        metavar="NAME[:PARTITIONS]",
        help="make a topic; again for more",
    )
    add(
        "--host", default="127.0.0.1", help="where to listen, and the address in Metadata (default 127.0.0.1)"
    )
    add(
        "--port",
        type=_port,
        default=0,
        metavar="PORT",
        help="of the first broker, the next ones follow (default any)",
    )
    add("--release", default="4.3", help=f"whose versions it speaks, {KNOWN[0]} to {KNOWN[-1]} (default 4.3)")
    add(
        "--config",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a broker setting; again for more",
    )
    add(
        "--user",
        action="append",
        default=[],
        type=_user,
        metavar="NAME:PASSWORD",
        help="let this user in at one more listener, with SASL (PLAIN and SCRAM), that is printed too; the first one "
        "needs no login; give the option again for more users",
    )
    add(
        "--flights",
        nargs="?",
        type=_positive,
        const=10_000,
        metavar="N",
        help=f"begin with invented flights in the topic flights, {PARTITIONS} partitions unless --topic says otherwise "
        "(N: 10000)",
    )
    add(
        "--rate", type=_rate, metavar="N", help="and let N more depart each second; they are kept for an hour"
    )
    add("--certificate", metavar="PEM", help="certificate and key: that listener speaks TLS")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {text!r}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= MOST_A_SECOND:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {MOST_A_SECOND}, not {text!r}")
    return rate


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"must be from 0 to {HIGHEST_PORT}, not {text!r}")
    return int(text)


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    return name, _positive(partitions or "1")


def _user(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise argparse.ArgumentTypeError("must be NAME:PASSWORD")
    return name, password


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _listeners(given: argparse.Namespace) -> list[Listener]:
    """Return the requested listener besides PLAINTEXT, if any. Raise ArgumentError for an invalid certificate."""
    context = None
    if given.certificate:
        context = SSLContext(PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(given.certificate)
        except OSError as exc:
            raise ArgumentError(
                f"--certificate {given.certificate} cannot be used: {exc.strerror}. "
                "Give a PEM file that holds a certificate and its private key."
            ) from exc
    mechanisms = MECHANISMS if given.user else ()
    name = f"{'SASL_' if mechanisms else ''}{'SSL' if context else 'PLAINTEXT'}"
    return [] if name == PLAINTEXT else [Listener(name, given.host, ssl=context, mechanisms=mechanisms)]


async def _serve(given: argparse.Namespace) -> None:
    listeners = _listeners(given)
    ports = [given.port + number if given.port else 0 for number in range(given.brokers)]
    cluster = EmbeddedCluster(
        given.brokers,
        release=given.release,
        topics=dict(given.topic),
        config=dict(given.config),
        addresses=[(given.host, port) for port in ports],
        listeners=listeners,
        users=dict(given.user),
    )
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    async with cluster:
        cluster.prepare_groups()
        printer = EventPrinter(cluster)
        cluster.observe(printer)
        console = Console(cluster, printer, sys.stdin.fileno())
        flights = Flights(cluster, Runtime())
        if given.flights:  # before a script reads the address
            flights.begin(given.flights)
            printer.print(f"topic {TOPIC} has {format_count(given.flights, 'flight')}")
        sys.stdout.write(cluster.bootstrap_servers + "\n")
        sys.stdout.writelines(f"{one.name} {cluster.servers(one.name)}\n" for one in listeners)
        sys.stdout.flush()
        serve = "serves" if given.brokers == 1 else "serve"
        brokers = format_count(given.brokers, "broker")
        printer.print(f"{brokers} of release {given.release} {serve}; interrupt to end")
        if not is_loopback(given.host):
            printer.print(
                f"anybody who reaches {printable(given.host)} may use {cluster.bootstrap_servers}, without a login"
            )
        departing = loop.create_task(flights.go_on(given.rate)) if given.rate else None
        console.open()
        await over.wait()
        console.close()
        if departing is not None:
            departing.cancel()
            await asyncio.wait({departing})
        printer.print("interrupted; all brokers end")


COMMANDS: Final = (
    "kill N, restart N, pause N, resume N, shutdown N, topic NAME [PARTITIONS], produce TOPIC VALUE, "
    "or leaders TOPIC"
)
READ_BYTES: Final = 65_536
MOST_A_SECOND: Final = 100_000


class EventPrinter(Observer):
    """Prints changes of brokers and topics, with the seconds since the start."""

    def __init__(self, cluster: EmbeddedCluster, stream: TextIO | None = None) -> None:
        self._cluster = cluster
        self._stream = stream or sys.stderr
        self._began = cluster.clock.now()

    def print(self, text: str) -> None:
        """Print one line. A closed stream is ignored: the cluster continues."""
        with contextlib.suppress(BrokenPipeError):
            self._stream.write(f"{self._cluster.clock.now() - self._began:8.3f} s  {text}\n")
            self._stream.flush()

    def broker_changed(self, node: int, change: str) -> None:
        leading = sum(partition.leader == node for partition in self._cluster.state.partitions())
        self.print(f"broker {node} is {change}; it leads {format_count(leading, 'partition')}")

    def topic_created(self, name: str, partitions: int) -> None:
        self.print(f"topic {name} is made, {format_count(partitions, 'partition')}")

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.print(f"topic {name} is deleted")


class Console:
    """Reads commands from a pipe or a terminal, without blocking the loop."""

    def __init__(self, cluster: EmbeddedCluster, printer: EventPrinter, descriptor: int) -> None:
        self._cluster = cluster
        self._printer = printer
        self._descriptor = descriptor
        self._unread = b""
        self._commands: Mapping[str, Callable[..., object]] = {
            "kill": lambda node: cluster.kill(int(node)),
            "restart": lambda node: cluster.restart(int(node)),
            "pause": lambda node: cluster.pause(int(node)),
            "resume": lambda node: cluster.resume(int(node)),
            "shutdown": lambda node: cluster.shutdown(int(node)),
            "topic": lambda name, partitions="1": cluster.create_topic(name, int(partitions)),
            "produce": self._produce,
            "leaders": self._leaders,
        }

    def open(self) -> None:
        """Start reading; a file or a closed input has no commands."""
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._on_input)
        except OSError:
            self._printer.print("standard input takes no commands")

    def close(self) -> None:
        """Stop reading."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def _on_input(self) -> None:
        if os.isatty(self._descriptor) and os.tcgetpgrp(self._descriptor) != os.getpgrp():
            return self.close()  # in the background: the input belongs to the shell
        data = os.read(self._descriptor, READ_BYTES)
        if not data:
            return self.close()
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            # The value of `produce` is all that follows the topic, spaces included.
            text = line.decode(errors="replace").strip()
            if words := text.split(maxsplit=2) if text.startswith("produce ") else text.split():
                self._do(*words)
        return None

    def _do(self, name: str, *words: str) -> None:
        try:
            done = self._commands[name](*words)
        except KclientError as exc:
            self._printer.print(str(exc))
        except (KeyError, TypeError, ValueError):
            self._printer.print(
                f"{' '.join((name, *words))[:80]!r} is not a command; commands are {COMMANDS}"
            )
        else:
            if isinstance(done, asyncio.Task):
                done.add_done_callback(self._print_failure)

    def _print_failure(self, task: asyncio.Task[object]) -> None:
        """Print the error of a task (a restart) that failed after its command returned."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._printer.print(str(problem))

    def _produce(self, topic: str, value: str) -> None:
        [(partition, offset)] = self._cluster.produce(topic, [value])
        self._printer.print(f"{topic}-{partition} has it at offset {offset}")

    def _leaders(self, topic: str) -> None:
        count = len(find_topic(self._cluster.state, topic).partitions)
        leaders = ", ".join(
            f"{number} on {self._cluster.leader_of(topic, number)}" for number in range(count)
        )
        self._printer.print(f"topic {topic}: {leaders}")


if __name__ == "__main__":
    sys.exit(main())
