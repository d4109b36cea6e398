"""The pytest plugin in projects of others: a cluster for each test or for all, set up by markers, or a real one."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from kclient.embedded import EmbeddedCluster
from localkafka import KafkaCluster

INI = "[pytest]\naddopts = --strict-markers -p no:cacheprovider\nfilterwarnings = error\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project that has kclient installed."""
    pytester.makeini(INI)
    return pytester


def test_nothing_is_imported_before_a_fixture_is_used() -> None:
    program = (
        "import pytest, sys; old = {*sys.modules}; import kclient.pytest_plugin; print(*{*sys.modules} - old)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert sorted(run.stdout.split()) == ["kclient", "kclient.pytest_plugin"]


def test_the_entry_point_alone_loads_nothing_else(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_without_kafka():
            assert sorted(m for m in sys.modules if m.startswith("kclient")) == ["kclient", "kclient.pytest_plugin"]
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.spec("U-25")
def test_every_test_has_a_cluster_of_its_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        def test_three_brokers_and_no_topics(kafka):
            assert len(kafka.bootstrap_servers.split(",")) == 3
            assert kafka.produce("orders", ["a", "b"]) == [(0, 0), (0, 1)]

        def test_nothing_is_left_of_another_test(kafka):
            assert kafka.produce("orders", ["a"]) == [(0, 0)]

        @pytest.mark.kafka_cluster(brokers=2, release="2.8", topics={"orders": 4}, config={"num.partitions": 5})
        def test_as_the_marker_says(kafka):
            assert len(kafka.bootstrap_servers.split(",")) == 2
            assert str(kafka.state.release) == "2.8"
            assert len(kafka.produce("orders", list("abcd"))) == 4
            assert {partition for partition, _ in kafka.produce("more", list("abcde"))} == {0, 1, 2, 3, 4}
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=3)


def test_one_cluster_serves_the_whole_run(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_cluster_options():
            return {"brokers": 1}
        """
    )
    project.makepyfile(
        """
        def test_first(kafka_cluster):
            assert "," not in kafka_cluster.bootstrap_servers
            assert kafka_cluster.produce("orders", ["a"]) == [(0, 0)]

        def test_second(kafka_cluster, kafka):
            assert kafka_cluster.produce("orders", ["b"]) == [(0, 1)]
            assert kafka.bootstrap_servers != kafka_cluster.bootstrap_servers
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_marker_that_says_nonsense_is_an_error(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.kafka_cluster(nodes=3)
        def test_it(kafka): ...
        """
    )
    result = project.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*kafka_cluster takes brokers, release, config, topics, racks by name*"])


@pytest.mark.spec("U-25")
def test_a_seed_repeats_what_is_drawn(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_it(kafka):
            print("DRAWN", kafka.state.cluster_id)
            assert False
        """
    )

    def drawn(*arguments: str) -> tuple[str, str]:
        lines = project.runpytest_subprocess(*arguments).stdout.lines
        cluster_id = next(line for line in lines if line.startswith("DRAWN"))
        return cluster_id, next(line for line in lines if "--kafka-seed=" in line).rpartition("=")[2]

    first, seed = drawn()
    assert drawn(f"--kafka-seed={seed}") == (first, seed)
    assert drawn()[0] != first


@pytest.mark.exclusive
@pytest.mark.spec("U-25")
def test_the_example_takes_less_than_100_ms(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import time
        import pytest
        from kclient import Consumer

        TOOK = []

        @pytest.fixture(autouse=True)
        def watch():
            began = time.perf_counter()
            yield
            TOOK.append(time.perf_counter() - began)

        @pytest.mark.parametrize("turn", range(8))
        def test_it(turn, kafka):
            kafka.produce("orders", ["one", "two"])
            settings = {"group_id": "billing", "auto_offset_reset": "earliest"}
            with Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
                assert [record.value for record in consumer.poll(timeout=5.0)] == [b"one", b"two"]

        def test_took():
            assert min(TOOK) < 0.1, TOOK
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=9)


REMOTE = """
    import pytest

    def test_topics_and_records(kafka):
        kafka.create("{topic}", partitions=2)
        assert [p for p, _ in kafka.produce("{topic}", ["a", "b", "c"])] == [0, 1, 0]
        assert kafka.produce("{topic}", [("21", "d")], codec="gzip")[0][1] == 2
        assert kafka.committed("nobody") == {{}}

    def test_the_topic_is_gone_again(kafka):
        assert kafka.produce("{topic}", ["a"]) == [(0, 0)]

    def test_what_only_the_embedded_can_do(kafka):
        kafka.kill(1)

    @pytest.mark.kafka_cluster(release="2.8")
    def test_what_cannot_be_chosen(kafka): ...

    @pytest.mark.kafka_cluster(brokers=7)
    def test_too_few(kafka): ...
"""


def on(project: pytest.Pytester, servers: str, topic: str) -> None:
    project.makepyfile(REMOTE.format(topic=topic))
    result = project.runpytest_subprocess(f"--kafka-bootstrap={servers}", "-rs")
    result.assert_outcomes(passed=2, skipped=3)
    result.stdout.fnmatch_lines(
        [
            "*kafka.kill is for the embedded cluster, and --kafka-bootstrap names another*",
            "*names a cluster whose release cannot be chosen*",
            "*names a cluster of * brokers, not 7*",
        ]
    )


def test_the_same_tests_run_on_a_cluster_elsewhere(project: pytest.Pytester) -> None:
    with EmbeddedCluster() as cluster:
        on(project, cluster.bootstrap_servers, "orders")


def test_the_same_tests_run_on_a_real_kafka(
    project: pytest.Pytester, kafka1: KafkaCluster, fresh_name: str
) -> None:
    on(project, kafka1.bootstrap_servers, fresh_name)


def test_a_cluster_that_is_not_there_is_reported_with_its_address(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(kafka): ...")
    result = project.runpytest_subprocess("--kafka-bootstrap=127.0.0.1:1")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*127.0.0.1:1*KC-102*"])


def test_an_empty_address_does_not_mean_the_embedded_cluster(project: pytest.Pytester) -> None:
    project.makepyfile("def test_here(kafka): kafka.create('orders')")
    result = project.runpytest_subprocess("--kafka-bootstrap=")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*bootstrap_servers*must name at least one host:port*"])


SIMULATED = """
    import asyncio

    def test_seven_fails(kafka_simulation):
        async def scenario(simulation):
            await asyncio.sleep(600.0)
            print(f"seed {simulation.seed} at {simulation.now:.0f} s")
            assert simulation.seed != 7

        kafka_simulation(scenario, seeds=range(5, 10), brokers=1)
"""


def test_a_simulation_runs_each_seed_and_names_the_one_that_fails(project: pytest.Pytester) -> None:
    project.makepyfile(SIMULATED)
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["seed 5 at 600 s", "seed 6 at 600 s", "seed 7 at 600 s"])
    result.stdout.fnmatch_lines(["E * assert 7 != 7*", "*repeat it with: pytest --kafka-seed=7"])
    result.stdout.no_fnmatch_line("seed 8*")


@pytest.mark.parametrize(("seed", "outcome"), [(7, "failed"), (8, "passed")])
def test_a_seed_on_the_command_line_is_the_only_one_that_runs(
    project: pytest.Pytester, seed: int, outcome: str
) -> None:
    project.makepyfile(SIMULATED)
    result = project.runpytest_subprocess("-s", f"--kafka-seed={seed}")
    result.assert_outcomes(**{outcome: 1})
    assert set(re.findall(r"seed (\d+) at 600 s", "\n".join(result.outlines))) == {str(seed)}


def test_a_simulation_leaves_the_cluster_of_the_run_alone(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from kclient import Consumer

        def test_both(kafka_cluster, kafka_simulation):
            async def scenario(simulation):
                await simulation.produce("orders", ["a"], seconds=60.0)

            kafka_cluster.produce("orders", ["a", "b"])
            settings = {"group_id": "g", "auto_offset_reset": "earliest", "session_timeout_ms": 6000}
            with Consumer("orders", bootstrap_servers=kafka_cluster.bootstrap_servers, **settings) as consumer:
                assert len(consumer.poll(10.0)) > 0
                kafka_simulation(scenario, seeds=[1, 2])
                consumer.commit()
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)
