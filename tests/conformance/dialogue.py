"""Random conversations of transactional producers with a broker, written down so that two brokers can be compared.

Producers believe in ids and epochs that some response gave, also long ago, and ask for anything at any time. A step is
repeated while the coordinator says that it is busy, and the next one waits until every marker is written; so what a
broker answers depends on the steps alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from kclient.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kclient.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kclient.generated.end_txn_request import EndTxnRequest
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kclient.protocol import errors
from kclient.records.aborted import control_type
from kclient.records.batch import read_batches
from kclient.records.writer import NewRecord, build_batch
from tests.conformance.target import SECONDS, Target, fresh, offered

PARTITIONS = 2
IDS = 2
NOBODY = (-1, -1)
LIMIT = 1 << 20
V2_PRODUCE = 12
BUSY = (
    errors.CONCURRENT_TRANSACTIONS,
    errors.NOT_ENOUGH_REPLICAS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)


class Dialogue:
    """One conversation with one broker; `lines` is what it came to."""

    def __init__(self, target: Target, seed: int, steps: int) -> None:
        self.target = target
        self.rng = random.Random(seed)
        self.topic = target.topic(PARTITIONS)
        self.group = target.coordinated(fresh("group"))
        self.ids = [target.coordinated(fresh("txn"), 1) for _ in range(IDS)]
        self.started = [False] * IDS
        self.producers: list[list[tuple[int, int]]] = [[] for _ in range(IDS)]
        self.sequences: dict[tuple[int, int, int], int] = {}
        self.lines: list[str] = []
        self._letters: dict[int, str] = {-1: "-"}
        for _ in range(steps):
            self._step()
        self._end()

    def name(self, producer_id: int) -> str:
        """A producer id by the order in which it was seen: brokers count theirs differently."""
        return self._letters.setdefault(producer_id, f"P{len(self._letters)}")

    def _step(self) -> None:
        moves: list[Callable[[int], str]] = [
            *[self._init] * 3,
            *[self._add] * 4,
            *[self._write] * 6,
            *[self._end_txn] * 5,
            self._add_group,
            *[self._commit_offset] * 3,
            self._batched,
        ]
        which = self.rng.randrange(IDS)
        self.lines.append(f"id {which}: {self.rng.choice(moves)(which)}")
        for number, started in enumerate(self.started):
            if started:
                self._settle(number)

    def _settle(self, which: int) -> None:
        """A question without effect, which is answered only when no end is under way."""
        request = InitProducerIdRequest(
            transactional_id=self.ids[which],
            transaction_timeout_ms=60_000,
            producer_id=2**62,
            producer_epoch=0,
        )
        response = self._patiently(lambda: self.target.ask(request, 4), lambda response: response.error_code)
        assert response.error_code == errors.PRODUCER_FENCED, response

    def _patiently(self, ask: Callable[[], Any], code: Callable[[Any], int]) -> Any:
        deadline = time.monotonic() + SECONDS
        while code(response := ask()) in BUSY:
            assert time.monotonic() < deadline, response
            time.sleep(0.002)
        return response

    def _believed(self, which: int, *, given: bool = False, newest: bool = False) -> tuple[int, int]:
        """Mostly the newest producer, sometimes one of long ago, rarely (not with `given`) an epoch of the future."""
        known = self.producers[which]
        if not known:
            return (2**61, 0)
        producer_id, epoch = known[-1] if newest or self.rng.random() < 0.75 else self.rng.choice(known)
        return producer_id, epoch + (not given and self.rng.random() < 0.05)

    def _version(self, api: str, *preferred: int) -> int:
        versions = offered(self.target.release, api)
        return min(self.rng.choice(preferred), versions[-1])

    def _saw(self, which: int, producer_id: int, epoch: int) -> str:
        if producer_id >= 0 and (producer_id, epoch) not in self.producers[which][-1:]:
            self.producers[which].append((producer_id, epoch))
        return f"{self.name(producer_id)}.{epoch}"

    # --- moves

    def _init(self, which: int) -> str:
        version = self._version("InitProducerId", 1, 3, 4, 4, 5)
        expected = self._believed(which) if version >= 3 and self.rng.random() < 0.4 else NOBODY
        request = InitProducerIdRequest(
            transactional_id=self.ids[which],
            transaction_timeout_ms=self.rng.choice([60_000] * 9 + [0]),
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        response = self._patiently(lambda: self.target.ask(request, version), lambda one: one.error_code)
        if response.error_code == errors.NONE:
            self.started[which] = True
        got = self._saw(which, response.producer_id, response.producer_epoch)
        return (
            f"init v{version} as {self.name(expected[0])}.{expected[1]} timeout "
            f"{request.transaction_timeout_ms}: {response.error_code} {got}"
        )

    def _add(self, which: int) -> str:
        version = self._version("AddPartitionsToTxn", 0, 1, 2, 3, 3)
        producer_id, epoch = self._believed(which)
        numbers = self.rng.choice([[0], [1], [0, 1], [0, PARTITIONS]])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.ids[which],
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=numbers)],
        )

        def codes(response: Any) -> list[int]:
            rows = response.results_by_topic_v3_and_below[0].results_by_partition
            return [
                row.partition_error_code for row in sorted(rows, key=lambda row: int(row.partition_index))
            ]

        response = self._patiently(lambda: self.target.ask(request, version), lambda one: codes(one)[0])
        return f"add v{version} {self.name(producer_id)}.{epoch} {numbers}: {codes(response)}"

    def _batched(self, which: int) -> str:
        """As brokers ask each other, of both ids at once."""
        if offered(self.target.release, "AddPartitionsToTxn")[-1] < 4:
            return "no batches"
        version = self._version("AddPartitionsToTxn", 4, 5)
        verify = self.rng.random() < 0.7
        rows = []
        for number in range(IDS):
            producer_id, epoch = self._believed(number)
            topic = AddPartitionsToTxnTopic(
                name=self.topic, partitions=[self.rng.randrange(PARTITIONS + (number == 0))]
            )
            rows.append(
                AddPartitionsToTxnTransaction(
                    transactional_id=self.ids[number],
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    verify_only=verify,
                    topics=[topic],
                )
            )
        response = self.target.ask(AddPartitionsToTxnRequest(transactions=rows), version)
        codes = {
            self.ids.index(result.transactional_id): [
                row.partition_error_code
                for topic in result.topic_results
                for row in topic.results_by_partition
            ]
            for result in response.results_by_transaction
        }
        return f"batched v{version} {'verify' if verify else 'add'}: {response.error_code} {sorted(codes.items())}"

    def _write(self, which: int) -> str:
        version = self._version("Produce", 3, 7, 9, 10, 11, 12, 12)
        producer_id, epoch = self._believed(which, given=True)  # Kafka remembers batches that it refused
        number = self.rng.randrange(PARTITIONS)
        place = (producer_id, epoch, number)
        wrong = version < V2_PRODUCE and self.rng.random() < 0.1  # after a refusal V2 takes any that is new
        sequence = self.sequences.get(place, 0) + (5 if wrong else 0)
        batch = build_batch(
            [NewRecord(value=b"%d" % len(self.lines), timestamp=int(time.time() * 1000))],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=number, records=batch)
        request = ProduceRequest(
            transactional_id=self.ids[which],
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )

        def row(response: Any) -> Any:
            return response.responses[0].partition_responses[0]

        response = self._patiently(
            lambda: self.target.ask(request, version), lambda one: int(row(one).error_code)
        )
        if row(response).error_code == errors.NONE:
            self.sequences[place] = sequence + 1
        return (
            f"write v{version} {self.name(producer_id)}.{epoch} #{sequence} to {number}: "
            f"{row(response).error_code} at {row(response).base_offset}"
        )

    def _end_txn(self, which: int) -> str:
        version = self._version("EndTxn", 0, 1, 3, 4, 5, 5, 5)
        producer_id, epoch = self._believed(which)
        commit = self.rng.random() < 0.5
        request = EndTxnRequest(
            transactional_id=self.ids[which],
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        response = self._patiently(lambda: self.target.ask(request, version), lambda one: one.error_code)
        got = self._saw(which, response.producer_id, response.producer_epoch)
        word = "commit" if commit else "abort"
        return f"{word} v{version} {self.name(producer_id)}.{epoch}: {response.error_code} {got}"

    def _add_group(self, which: int) -> str:
        version = self._version("AddOffsetsToTxn", 0, 1, 2, 3)
        producer_id, epoch = self._believed(which)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.ids[which],
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.group,
        )
        response = self._patiently(lambda: self.target.ask(request, version), lambda one: one.error_code)
        return f"add group v{version} {self.name(producer_id)}.{epoch}: {response.error_code}"

    def _commit_offset(self, which: int) -> str:
        version = self._version("TxnOffsetCommit", 0, 2, 3, 4, 5, 5)
        # Before 3.7 no marker could follow a future epoch, and an old one took pending offsets of newer ones with it.
        old = not self.target.since("3.7")
        producer_id, epoch = self._believed(which, given=True, newest=old)
        generation = self.rng.choice([-1] * 9 + [3]) if version >= 3 else -1
        row = TxnOffsetCommitRequestPartition(
            partition_index=self.rng.choice([0] * 9 + [PARTITIONS]), committed_offset=len(self.lines)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.ids[which],
            group_id=self.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=generation,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[row])],
        )

        def code(response: Any) -> int:
            return int(response.topics[0].partitions[0].error_code)

        response = self._patiently(lambda: self.target.ask(request, version), code)
        return (
            f"commit offset v{version} {self.name(producer_id)}.{epoch} generation {generation} "
            f"of {row.partition_index}: {code(response)}; then {self._committed()}"
        )

    # --- what it came to

    def _committed(self) -> tuple[int, int]:
        topic = OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=self.group, topics=[topic], require_stable=True)
        response = self.target.ask(request, 7)
        row = response.topics[0].partitions[0]
        return int(row.committed_offset), int(row.error_code)

    def _end(self) -> None:
        self.lines.append(f"offset {self._committed()}")
        for number in range(PARTITIONS):
            self.lines += self._log(number)

    def _log(self, number: int) -> list[str]:
        rows = [FetchPartition(partition=number, partition_max_bytes=1 << 20)]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=1,
            topics=[FetchTopic(topic=self.topic, partitions=rows)],
        )
        read = self.target.ask(request, 11).responses[0].partitions[0]
        request.isolation_level = 0
        data = self.target.ask(request, 11).responses[0].partitions[0].records or b""
        lines = [
            f"{number}: {batch.base_offset} {self.name(batch.producer_id)}.{batch.producer_epoch} "
            f"#{batch.base_sequence} marker {control_type(batch, LIMIT) if batch.is_control else '-'}"
            for batch in read_batches(data)
        ]
        aborted = [(self.name(one.producer_id), one.first_offset) for one in read.aborted_transactions or ()]
        return [
            *lines,
            f"{number}: high watermark {read.high_watermark} last stable {read.last_stable_offset} "
            f"aborted {sorted(aborted)}",
        ]
