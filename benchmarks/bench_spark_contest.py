"""Who takes part in the Spark benchmark, and what comes of it: rows a second, CPU, ratios with verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import attrs

from benchmarks.bench_spark_process import Cpu
from benchmarks.bench_spark_session import Cost
from benchmarks.bench_spark_topics import Topic
from benchmarks.report import Figure, Goal


@attrs.frozen
class Contestant:
    """Who reads, and where the rows go."""

    name: str
    format: str
    sink: str

    @property
    def is_jvm_source(self) -> bool:
        return self.format == "kafka"


OURS = Contestant("kclient to noop", "kclient", "noop")
OURS_SINK = Contestant("kclient to Parquet", "kclient", "parquet")
DIRECT = Contestant("kclient direct Parquet", "kclient", "direct")
JVM = Contestant("JVM source to noop", "kafka", "noop")
JVM_SINK = Contestant("JVM source to Parquet", "kafka", "parquet")
FREE = Contestant("synthetic to noop", "synthetic", "noop")
FREE_SINK = Contestant("synthetic to Parquet", "synthetic", "parquet")
CONTESTANTS = (OURS, JVM, FREE, OURS_SINK, JVM_SINK, FREE_SINK, DIRECT)


@attrs.frozen
class Ratio:
    """How much faster one is than another, what that has to be at 100 B and at 1 KB, and what is wished for."""

    one: Contestant
    other: Contestant
    at_100: float | None = None
    at_1000: float | None = None
    wish: float | None = None

    def goal(self, topic: Topic) -> Goal | None:
        least = self.at_100 if topic.value_bytes == 100 else self.at_1000
        return None if least is None else Goal(least=least)


RATIOS = (
    Ratio(OURS, JVM, at_100=0.5, wish=0.75),
    Ratio(DIRECT, JVM_SINK, at_100=0.9, at_1000=1.0),
    Ratio(OURS_SINK, FREE_SINK, at_100=0.7, at_1000=0.7),  # SG-05
    Ratio(OURS_SINK, JVM_SINK),
)
MOST_CPU = {100: 6.0, 1_000: 4.0}
"""SG-09: the CPU of a row of ours, in those of the synthetic source's, by the size of values."""

Round = dict[Contestant, Cost]


def figures(topic: Topic, rows: int, rounds: list[Round]) -> Iterator[Figure]:
    """Rows per second and CPU of each reader, then the ratios."""
    cpu = {contestant: [each[contestant].cpu for each in rounds] for contestant in rounds[0]}
    for contestant, costs in cpu.items():
        jvm, python = (
            1e6 / rows * median(getattr(one, where) for one in costs) for where in ("jvm", "python")
        )
        rate = rows / median(each[contestant].seconds for each in rounds)
        note = f"CPU us/row: {jvm + python:.2f} (JVM {jvm:.2f}, Python {python:.2f})"
        yield Figure(f"{topic.name}: {contestant.name}", rate / 1e3, "1000/s", note=note)
    for ratio in RATIOS:
        if ratio.one in cpu and ratio.other in cpu:
            yield _compared(topic, ratio, rounds)
    if OURS in cpu and FREE in cpu:
        yield _cpu(topic, rows, list(zip(cpu[OURS], cpu[FREE], strict=True)))


def _compared(topic: Topic, ratio: Ratio, rounds: list[Round]) -> Figure:
    pairs = [(each[ratio.one], each[ratio.other]) for each in rounds]
    by_time = median(other.seconds / one.seconds for one, other in pairs)
    by_cpu = median(other.cpu.total / one.cpu.total for one, other in pairs)
    goal = ratio.goal(topic)
    wish = f"; wished for {ratio.wish:g}" if ratio.wish and goal else ""
    return Figure(
        f"{topic.name}: {ratio.one.name} : {ratio.other.name}",
        by_time,
        "x",
        goal,
        f"{by_cpu:.2f} x by CPU{wish}",
    )


def _cpu(topic: Topic, rows: int, pairs: list[tuple[Cpu, Cpu]]) -> Figure:
    """What a row of ours takes beside one that costs nothing but Spark."""
    jvm = median(1e6 / rows * (one.jvm - free.jvm) for one, free in pairs)
    python = median(1e6 / rows * (one.python - free.python) for one, free in pairs)
    return Figure(
        f"{topic.name}: CPU of kclient : synthetic, to noop",
        median(one.total / free.total for one, free in pairs),
        "x",
        Goal(most=MOST_CPU[topic.value_bytes]),
        f"us/row more: JVM {jvm:.2f}, Python {python:.2f}",
    )
