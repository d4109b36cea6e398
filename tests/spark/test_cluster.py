"""Past one machine: a standalone cluster of Spark, to which a job is submitted as docs/spark-cluster.md says.

Master, two workers, their executors and the driver are processes of their own. Their Python knows what kclient stands
on; kclient comes with the job, as a zip. Brokers want a password: the driver finds that of a user who may not read, the
workers that of one who may, each in its own environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster, Listener
from kclient.spark.sink import manifest
from localkafka.errors import LocalKafkaError
from localspark import JAVA_OPTIONS, environments
from localspark.standalone import HOST, StandaloneCluster
from tests.security.certificates import Authority
from tests.spark import cluster_page
from tests.spark.cluster_watch import Fetches, Processes, errors_of
from tests.spark.jobs.support import Landed, assert_exactly_once, fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

JOB = Path(__file__).with_name("cluster_job.py")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLANNER, READER = "planners-word-4711", "readers-word-4712"
USERS = {"planner": PLANNER, "reader": READER}
BROKERS, PARTITIONS, RECORDS = 3, 6, 6_000
SECONDS = 420
SMALL = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "600m",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # no task before both executors are there
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.port": "0",
    "spark.log.level": "INFO",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def login(user: str) -> dict[str, str]:
    """What the page lets processes of this user find in their environment."""
    return {"KAFKA_LOGIN": f'{SCRAM} required username="{user}" password="{USERS[user]}";'}


@attrs.frozen
class Ran:
    """One run of the job, and all that it left."""

    report: dict[str, Any]
    wanted: list[Landed]
    fetches: Fetches
    processes: Processes
    master_pages: str
    folder: Path


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with pyspark and what kclient stands on, but without kclient."""
    if shutil.which("java") is None:
        pytest.skip("no Spark: there is no java on the path")
    try:
        return environments.bare("4.3")
    except LocalKafkaError as exc:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no environment for a cluster: {exc}")


@pytest.fixture(scope="module")
def ran(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    where = tmp_path_factory.mktemp("cluster")
    authority = Authority()
    tls = authority.issue(HOST).server_context(where)
    listener = Listener("SASL_SSL", ssl=tls, mechanisms=("SCRAM-SHA-512",))
    kafka = EmbeddedCluster(BROKERS, topics={"orders": PARTITIONS}, listeners=[listener], users=USERS)
    with kafka, StandaloneCluster(python, worker_environment=login("reader")) as spark:
        kafka.deny("User:planner", "READ", "Topic:orders")
        kafka.observe(fetches := Fetches())
        wanted = fill_with_numbers(kafka)
        options = {
            **cluster_page.source_options(),
            "kafka.bootstrap.servers": kafka.servers("SASL_SSL"),
            "kafka.ssl.truststore.location": str(authority.write_pem(where / "authority.pem")),
        }
        given = write_given(where, options)
        processes = Processes()
        driver = submit(spark, python, where, given)
        pages = watch(spark, driver, processes)
        if driver.returncode != 0:
            pytest.fail(errors_of(spark.logs()), pytrace=False)
        shutil.copytree(spark.folder, where / "spark")
        report = json.loads((where / "told.json").read_text())
        report["typed"] = ingest_by_command(spark, where)
        yield Ran(report, wanted, fetches, processes, pages, where)


def fill_with_numbers(kafka: EmbeddedCluster) -> list[Landed]:
    found = []
    for number in range(RECORDS):
        ((partition, offset),) = kafka.produce("orders", [b"%d" % number], partition=number % PARTITIONS)
        found.append(Landed("orders", partition, offset, b"%d" % number))
    return found


def write_given(where: Path, options: dict[str, Any]) -> Path:
    """The job's input."""
    ingest = {
        "bootstrap": options["kafka.bootstrap.servers"],
        "topics": options["subscribe"],
        "sink": f"parquet:{where / 'sink'}",
        "checkpoint": str(where / "checkpoint"),
        "max_per_trigger": RECORDS // 3,
        "parallelism": int(options["minPartitions"]),
        "options": [f"{name}={text}" for name, text in options.items() if name.startswith("kafka.s")],
    }
    given = where / "given.json"
    given.write_text(json.dumps({"options": options, "ingest": ingest}))
    return given


def submit(spark: StandaloneCluster, python: Path, where: Path, given: Path) -> subprocess.Popen[str]:
    """As the page says, and with less memory than it would have."""
    (where / "events").mkdir()
    here = {"/jobs/kclient.zip": str(cluster_page.package(where)), "/opt/spark/bin/python": str(python)}
    environment, page_options = cluster_page.submission(here)
    small = {**SMALL, "spark.eventLog.dir": f"file:{where / 'events'}"}
    options = [word for name, text in small.items() for word in ("--conf", f"{name}={text}")]
    return spark.submit(
        JOB,
        [str(given), str(where / "told.json")],
        [*page_options, *options],
        {**environment, **login("planner"), "SPARK_LOCAL_IP": HOST},
    )


def ingest_by_command(spark: StandaloneCluster, where: Path) -> dict[str, Any]:
    """`kclient ingest --master spark://…` with this environment, which all machines of the cluster share."""
    given = ["--sink", f"parquet:{where / 'typed'}", "--checkpoint", f"{where / 'typed-checkpoint'}"]
    conf = {name: SMALL[name] for name in SMALL if not name.startswith(("spark.eventLog", "spark.log"))}
    words = [word for name, text in conf.items() for word in ("--conf", f"{name}={text}")]
    with EmbeddedCluster(topics={"orders": 2}) as kafka:
        fill(kafka, 100)
        where_from = ["-b", kafka.bootstrap_servers, "--topics", "orders", "--parallelism", "2"]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kclient",
                "ingest",
                *where_from,
                *given,
                "--master",
                spark.master,
                *words,
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "SPARK_LOCAL_IP": HOST},
            check=False,
        )
    names = [one["name"] for one in spark.state()["completedapps"]]
    return {"code": done.returncode, "error": done.stderr, "applications": names}


def watch(spark: StandaloneCluster, driver: subprocess.Popen[str], processes: Processes) -> str:
    """Look at everything twice a second until the job has ended; what the master's page showed."""
    names = ("master", "worker-0", "worker-1")
    roots = {**dict(zip(names, spark.pids, strict=True)), "driver": driver.pid}
    pages, deadline = "", time.monotonic() + SECONDS
    while driver.poll() is None and time.monotonic() < deadline:
        processes.look(roots)
        pages += spark.page()
        time.sleep(0.5)
    if driver.poll() is None:
        os.killpg(driver.pid, 9)
        driver.wait()
    return pages + spark.page()


def test_executors_connect_to_every_broker(ran: Ran) -> None:
    assert (ran.report["rows"], ran.report["total"]) == (RECORDS, sum(range(RECORDS)))
    assert len(ran.report["tasks"]) == 2
    assert min(ran.report["tasks"].values()) > 0
    assert {user for user, _, _ in ran.fetches.seen} == {"User:reader"}
    for broker in range(1, BROKERS + 1):
        connections = {number for _, node, number in ran.fetches.seen if node == broker}
        assert len(connections) >= 2  # at least one of each executor


@pytest.mark.spec("SP-82")
def test_an_ingest_on_two_machines_lands_each_record_once(ran: Ran) -> None:
    assert ran.report["landed"] == [RECORDS, 0]
    assert_exactly_once(ran.folder / "sink", ran.wanted)


@pytest.mark.spec("SP-82")
def test_the_command_line_runs_a_job_on_the_cluster(ran: Ran) -> None:
    typed = ran.report["typed"]
    assert typed["code"] == 0, typed["error"]
    assert "kclient ingest" in typed["applications"]
    assert manifest.count(ran.folder / "typed") == 100


@pytest.mark.spec("SP-44", "SP-45", "ST-17", "I-39")
def test_a_password_is_where_connections_are_made_and_nowhere_else(ran: Ran) -> None:
    assert ran.processes.holding(READER) == {"worker-0", "worker-1"}
    assert ran.processes.holding(PLANNER) == {"driver"}
    shown = {
        **{f"page {name}": page for name, page in ran.report["pages"].items()},
        "pages of the master": ran.master_pages,
        "command lines": "\n".join(ran.processes.command_lines),
        **{str(path): path.read_text(errors="replace") for path in ran.folder.rglob("*") if path.is_file()},
    }
    assert "KAFKA_LOGIN" in shown[str(ran.folder / "given.json")]
    assert "kclient" in shown["page environment"]
    assert "CoarseGrainedExecutorBackend" in shown["command lines"]
    assert any("SparkListenerSQLExecutionStart" in text for name, text in shown.items() if "/events/" in name)
    assert any("Running task" in text for name, text in shown.items() if "/work-1/" in name)
    assert [name for name, text in shown.items() if READER in text or PLANNER in text] == []


@pytest.mark.spec("SP-15")
def test_the_code_came_with_the_job(python: Path, ran: Ran) -> None:
    """Without --py-files it is missing: neither the driver's Python nor that of the executors."""
    done = subprocess.run(
        [python, "-I", "-c", "import kclient"], capture_output=True, text=True, cwd="/", check=False
    )
    assert "No module named 'kclient'" in done.stderr
    copies = [path.parts[-2] for path in (ran.folder / "spark").glob("work-*/*/*/kclient.zip")]
    assert sorted(copies) == ["0", "1"]
