"""An invented run for the tests of the report: 600 records, a killed broker, member and job."""

from __future__ import annotations

from typing import Any

from demo.recording import (
    DONE,
    KILLED,
    MOVED,
    STARTED,
    Batch,
    Carrier,
    Command,
    Count,
    Event,
    Latency,
    Numbers,
    Place,
    Recording,
    Recovery,
    Sample,
)

RIGHT = {"expected": 600, "published": 600, "consumed": 600, "committed": 600, "parquet": 600, "lag": 0}


def numbers(**wrong: int) -> Numbers:
    return Numbers(**{**RIGHT, **wrong})


def a_run(**fields: Any) -> Recording:
    run = Recording(
        "2026-01-02T03:04:05+00:00", "three embedded brokers", "127.0.0.1:9", "flights", 2, "delays", "landed"
    )
    run.begin("broker 3", "serves", 0.5)
    run.begin("member A", "joins", 1.0)
    run.begin("ingest", "starts", 1.0)
    run.begin("member A", "reads", 2.0)
    run.begin("ingest", "lands", 6.0)
    run.finish("broker 3", 4.0, killed=True)
    run.finish("member A", 9.0)
    run.finish("ingest", 11.0, killed=True)
    run.published = [Count(1.0, 300), Count(5.0, 600)]
    run.recoveries = [Recovery("The member killed", 4.0, 3.4, "until the other read on")]
    run.latency = Latency(240, 0.0042, 0.61, 1.9)
    run.machine = {"Machine": "eight cores"}
    run.owns("A", [0], 2.0)
    run.owns("A", [0, 1], 5.0)
    run.owns("A", [], 9.0)
    run.events += [
        Event(4.0, KILLED, "broker 3 killed"),
        Event(5.0, MOVED, "member A has partition 1 now"),
        Event(11.0, KILLED, "the job killed"),
        Event(11.1, STARTED, "the job again"),
        Event(19.0, DONE, "landed"),
    ]
    run.lags = {
        "delays": [
            Sample(1.0, [300, 300]),
            Sample(2.0, [200, 300]),
            Sample(8.0, [0, 100]),
            Sample(9.0, [0, 0]),
        ],
        "landed": [Sample(1.0, [300, 300]), Sample(2.0, [300, 300]), Sample(19.0, [0, 0])],
    }
    run.batches = [Batch(1, 0, 7.0, 9.0, 400, 4_000, 2), Batch(2, 1, 15.0, 17.5, 200, 2_000, 2, 10, 20, 30)]
    run.carriers = [
        Carrier("F9", "Frontier <Airlines> & Co", 5, 20.25, -4.5),
        Carrier("OO", "SkyWest", 2, None, None),
    ]
    run.places = [Place("demo-out/flights", "the flights")]
    run.further = [Command("Where the rows are:", "ls 'demo-out/flights'")]
    run.seconds = 20.0
    run.numbers = numbers()
    for name, value in fields.items():
        setattr(run, name, value)
    return run
