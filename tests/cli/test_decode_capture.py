"""`kclient decode --capture`: what went over real connections to the embedded cluster, in packets of all kinds."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer
from kclient.embedded import EmbeddedCluster, Listener
from kclient.generated.metadata_request import MetadataRequest
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.protocol import encode, to_json
from kclient.protocol.headers import request_frame
from tests.cli.captures import (
    ACK,
    CLIENT_SEQUENCE,
    LINKS,
    PSH,
    SYN,
    Part,
    Recorder,
    packets,
    pcap,
    pcapng,
)
from tests.cli.support import Done, call
from tests.kafka.wire_tap import Exchange

Decode = Callable[..., Done]


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """A consumer of a group that has read and committed."""
    recorder = Recorder()
    with EmbeddedCluster(
        brokers=1, topics={"orders": 2}, config={"group.initial.rebalance.delay.ms": 0}
    ) as kafka:
        kafka.produce("orders", ["x" * 3_000] * 20)
        settings = {"group_id": "billing", "auto_offset_reset": "earliest", "runtime": recorder}
        with Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
            count = 0
            while count < 20:
                count += len(consumer.poll(timeout=5.0))
    return recorder


@pytest.fixture
def decode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Decode:
    def run(data: bytes, *words: str) -> Done:
        path = tmp_path / "capture"
        path.write_bytes(data)
        return call(capsys, "decode", "--json", "-r", str(path), *words)

    return run


def expected(recorder: Recorder) -> list[tuple[str, int, Any, Any]]:
    """API, version, request and response of each exchange, as the tap of the tests has decoded them."""
    return [
        (
            one.api,
            one.version,
            without_secrets(to_json(one.request, one.version)),
            None if one.response is None else to_json(one.response, answered_in(one)),
        )
        for one in recorder.exchanges
    ]


def answered_in(exchange: Exchange) -> int:
    """The version of the response: a broker refuses a version of ApiVersions in the oldest one."""
    refused = exchange.api == "ApiVersions" and exchange.response.error_code == 35
    return 0 if refused else exchange.version


def without_secrets(message: Any) -> Any:
    return message | {"authBytes": "***"} if "authBytes" in message else message


def exchanges(done: Done) -> list[tuple[str, int, Any, Any]]:
    """The same of what the command printed: responses beside the requests that they belong to."""
    assert done.code == 0, done.err
    found: dict[tuple[Any, ...], list[Any]] = {}
    for event in done.events:
        assert "problem" not in event, event
        if "request" in event:
            head = event["request"]
            key = (event["from"], event["to"], head["api"], head["correlationId"])
            assert key not in found
            found[key] = [head["api"], head["version"], event["message"], None]
        else:
            head = event["response"]
            assert event["milliseconds"] >= 0
            key = (event["to"], event["from"], head["api"], head["correlationId"])
            assert found[key][3] is None
            found[key][3] = event["message"]
    return [tuple(one) for one in found.values()]


def same(one: list[tuple[str, int, Any, Any]], other: list[tuple[str, int, Any, Any]]) -> bool:
    return sorted(map(json.dumps, one)) == sorted(map(json.dumps, other))


@pytest.mark.parametrize("link", LINKS)
def test_every_message_of_every_connection_is_there(link: str, recorder: Recorder, decode: Decode) -> None:
    apis = {one.api for one in recorder.exchanges}
    assert {"ApiVersions", "Metadata", "JoinGroup", "Fetch", "OffsetCommit", "LeaveGroup"} <= apis
    assert recorder.connections > 1
    done = decode(pcap(packets(recorder.chunks), link))
    assert same(exchanges(done), expected(recorder))
    assert done.err == ""
    assert done.events[0]["time"] == "2025-11-24T16:00:00.003Z"
    assert (
        "[fe80::2]:40001" if link in ("vlan", "null", "raw", "cooked2") else "10.0.0.2:40001"
    ) == done.events[0]["from"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_has_interfaces_of_different_kinds(order: str, recorder: Recorder, decode: Decode) -> None:
    parts = packets(recorder.chunks)
    assert same(exchanges(decode(pcapng(parts, ("ethernet", "null4"), order=order))), expected(recorder))


@pytest.mark.parametrize("nanos", [False, True])
def test_both_orders_and_both_clocks_of_pcap(nanos: bool, recorder: Recorder, decode: Decode) -> None:
    done = decode(pcap(packets(recorder.chunks), order=">", nanos=nanos))
    assert same(exchanges(done), expected(recorder))
    assert done.events[0]["time"] == "2025-11-24T16:00:00.003Z"


def test_packets_that_come_late_twice_and_in_other_pieces(recorder: Recorder, decode: Decode) -> None:
    drawn = random.Random(7)
    parts: list[Part] = []
    for part in packets(recorder.chunks, size=97):
        parts.append(part)
        if part.payload and drawn.random() < 0.2:  # sent again, and some of it with what came before
            parts.append(part)
            before = next(
                (
                    one
                    for one in reversed(parts[:-2])
                    if (one.number, one.from_client) == (part.number, part.from_client)
                ),
                part,
            )
            if (before.sequence + len(before.payload)) % 2**32 == part.sequence and before.payload:
                parts.append(
                    Part(part.number, part.from_client, before.sequence, ACK, before.payload + part.payload)
                )
    for _ in range(3):
        for at in range(len(parts) - 1):  # a response never comes before its request
            one, other = parts[at : at + 2]
            same_stream = (one.number, one.from_client) == (other.number, other.from_client)
            if same_stream and one.payload and other.payload and drawn.random() < 0.4:
                parts[at], parts[at + 1] = other, one
    assert same(exchanges(decode(pcap(parts))), expected(recorder))


def test_a_capture_that_begins_later_goes_on_at_the_next_frame(recorder: Recorder, decode: Decode) -> None:
    parts = packets(recorder.chunks, with_syn=False)
    done = decode(pcap(parts))
    assert same(exchanges(done), expected(recorder))
    assert f"{2 * recorder.connections} gaps" in done.err
    cut = next(at for at, part in enumerate(parts) if part.from_client is False)
    rest = decode(pcap(parts[cut:]))
    assert rest.code == 0
    printed = exchanges(rest)
    assert 0 < len(printed) < len(recorder.exchanges)
    assert all(one in expected(recorder) for one in printed)


@pytest.mark.parametrize("from_client", [True, False])
def test_a_packet_that_is_missing_costs_its_message_alone(
    from_client: bool, recorder: Recorder, decode: Decode
) -> None:
    """What the other end acknowledges behind the hole shows that the packet is not late."""
    parts = packets(recorder.chunks, size=400)
    lost = [at for at, part in enumerate(parts) if part.from_client is from_client and part.payload]
    for at in lost[1:-8:3]:
        done = decode(pcap(parts[:at] + parts[at + 1 :]))
        printed = exchanges(done)
        assert len(recorder.exchanges) - 2 <= len(printed) <= len(recorder.exchanges)
        assert all(one[:3] in [two[:3] for two in expected(recorder)] for one in printed)


def test_packets_of_which_the_end_was_cut_off(recorder: Recorder, decode: Decode) -> None:
    """tcpdump -s 200: short messages are whole, and long ones are known to be cut."""
    done = decode(pcap(packets(recorder.chunks), snapshot=200))
    printed = exchanges(done)
    assert 0 < len(printed) < len(recorder.exchanges)
    assert all(one[:3] in [two[:3] for two in expected(recorder)] for one in printed)
    assert "gaps" in done.err


def test_raw_tokens_after_an_old_handshake_are_skipped(decode: Decode) -> None:
    """Until Kafka 1.0 the tokens of SASL were frames without a header."""
    handshake = b"".join(request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1, "me"))
    metadata = b"".join(request_frame(MetadataRequest(topics=None), 1, 2, "me"))
    answer = (1).to_bytes(4) + encode(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0)
    token = b"\0alice\0opensesame"
    chunks = [
        (1, True, handshake),
        (1, False, len(answer).to_bytes(4) + answer),
        (1, True, len(token).to_bytes(4) + token),
        (1, False, bytes(4)),
        (1, True, metadata),
    ]
    done = decode(pcap(packets(chunks)))
    assert [event.get("request", event.get("response"))["api"] for event in done.events] == [
        "SaslHandshake",
        "SaslHandshake",
        "Metadata",
    ]
    assert "opensesame" not in done.out + done.err


def test_ports_and_an_api_choose(recorder: Recorder, decode: Decode) -> None:
    data = pcap(packets(recorder.chunks))
    fetches = exchanges(decode(data, "--api", "Fetch"))
    assert {one[0] for one in fetches} == {"Fetch"}
    assert len(fetches) == len(recorder.asked("Fetch"))
    assert same(exchanges(decode(data, "-p", "9092")), expected(recorder))
    assert decode(data, "-p", "9093").events == []


def test_a_pipe_is_read(
    recorder: Recorder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pcap(packets(recorder.chunks))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert same(exchanges(call(capsys, "decode", "--json", "-r", "-")), expected(recorder))


def test_passwords_are_not_shown(decode: Decode) -> None:
    recorder = Recorder()
    listener = Listener("SASL_PLAINTEXT", mechanisms=("PLAIN",))
    with EmbeddedCluster(brokers=1, topics={"orders": 1}, listeners=[listener]) as kafka:
        kafka.add_user("alice", "opensesame")
        with Consumer(
            bootstrap_servers=kafka.servers("SASL_PLAINTEXT"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="opensesame",
            allow_plaintext_credentials=True,
            runtime=recorder,
        ) as consumer:
            consumer.list_topics()
    assert any(b"opensesame" in data for _, _, data in recorder.chunks)
    done = decode(pcap(packets(recorder.chunks)))
    assert "SaslAuthenticate" in done.out
    assert "opensesame" not in done.out + done.err


def test_tls_and_other_traffic_are_named_and_left_out(recorder: Recorder, decode: Decode) -> None:
    tls = [(8, True, b"\x16\x03\x01\x02\x00" + bytes(600)), (8, False, b"\x16\x03\x03" + bytes(99))]
    http = [(9, True, b"GET / HTTP/1.1\r\n\r\n"), (9, False, b"HTTP/1.1 200 OK\r\n\r\n")]
    done = decode(pcap(packets([*tls, *http, *recorder.chunks])))
    assert same(exchanges(done), expected(recorder))
    assert "1 connections encrypted with TLS" in done.err


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "this is no capture"),
        (b"00120004", "this is no capture"),
        (
            pcap([])[:4] + bytes(20) + b"\xff" * 16,
            "the capture is damaged: a packet or block of 4,294,967,295 bytes",
        ),
        (pcapng([]) + b"\x06\0\0\0" + bytes(4), "the capture is damaged: a packet or block of -8 bytes"),
        (pcap([])[:20] + b"\xa3\0\0\0" + bytes(16), "of link type 163"),
    ],
    ids=["empty", "hex", "pcap", "pcapng", "link"],
)
def test_what_is_no_capture_ends_with_2(data: bytes, says: str, decode: Decode) -> None:
    done = decode(data)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["00120004", "-r", "x"], "--capture is not allowed with HEX"),
        (["-r", "/none"], "--capture /none cannot be read"),
        (["00120004", "-p", "9092"], "--port belongs to --capture"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "decode", *words)
    assert done.code == 2
    assert says in done.err


def test_any_damage_is_an_error_or_less_output(recorder: Recorder, decode: Decode) -> None:
    """Bytes changed, cut out, and cut off: nothing but the typed error, and nothing invented."""
    drawn = random.Random(11)
    whole = pcapng(packets(recorder.chunks))
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(drawn.randrange(1, 6)):
            at = drawn.randrange(len(data))
            if drawn.random() < 0.5:
                data[at] = drawn.randrange(256)
            else:
                del data[at : at + drawn.randrange(1, 300)]
        done = decode(bytes(data))
        assert done.code in (0, 2), done.err
        assert "KC-901" not in done.err


def test_bytes_that_wait_for_a_packet_are_bounded() -> None:
    """A stream whose first packet never comes goes on after 4 MiB, and keeps no more."""
    from kclient.cli.capture import segments
    from kclient.cli.conversations import MOST_AHEAD, Conversations

    parts = [Part(1, True, CLIENT_SEQUENCE, SYN)]
    sequence = CLIENT_SEQUENCE + 2
    for _ in range(200):
        parts.append(Part(1, True, sequence % 2**32, PSH, b"\xff" * 60_000))
        sequence += 60_000
    conversations = Conversations()
    for at in range(1, len(parts) + 1, 50):
        list(conversations.read(segments(io.BytesIO(pcap(parts[:at] if at == 1 else parts[at - 50 : at])))))
        assert conversations._waiting <= MOST_AHEAD + 60_000
    assert sum(conversations.notes.values()) >= 1
