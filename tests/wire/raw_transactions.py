"""Single requests about transactions, in any version, for tests without a client.

`Txn` is a producer with a transactional id: it remembers its producer id, its epoch and its sequence numbers, and does
nothing by itself. In protocol 1 it adds its partitions first; in protocol 2 (KIP-890) it only writes.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from quire.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.fetch import FetchResponse, PartitionData
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from quire.testing import WireConnection
from tests.wire.batches import batch
from tests.wire.clients import eventually
from tests.wire.raw import fetch_request, produce_request, topic_metadata

TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
"""Bits of a batch's attributes."""
INIT_NEWEST, END_NEWEST, ADD_NEWEST, ADD_OFFSETS_NEWEST, TXN_COMMIT_NEWEST, PRODUCE_NEWEST = 5, 5, 3, 4, 5, 13
BUMPS_WITH_EVERY_END_FROM = 5
"""The version of EndTxn and TxnOffsetCommit that means protocol 2."""
ADDS_PARTITIONS_FROM = 12
"""The version of Produce that means protocol 2."""
READ_COMMITTED = 1
TIMEOUT_MS = 60_000

Answer = TypeVar("Answer", ErrorCode, InitProducerIdResponse, EndTxnResponse)


def now_ms() -> int:
    """For records that must be in one segment with the markers, whose timestamp is the current time."""
    return int(time.time() * 1000)


def init_producer_id(
    connection: WireConnection,
    transactional_id: str | None,
    *,
    version: int = INIT_NEWEST,
    timeout_ms: int = TIMEOUT_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    **more: Any,
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        **more,
    )
    return connection.call(request, version, InitProducerIdResponse)


class Txn:
    """One producer. Every call is one request and its response, with or without an error."""

    def __init__(self, connection: WireConnection, transactional_id: str, *, protocol: int = 2) -> None:
        self.connection = connection
        self.transactional_id = transactional_id
        self.protocol = protocol
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def init(self, **more: Any) -> "Txn":
        answer = retrying(lambda: init_producer_id(self.connection, self.transactional_id, **more))
        assert answer.error_code == ErrorCode.NONE
        self._become(answer.producer_id, answer.producer_epoch)
        return self

    def add(
        self, topics: Mapping[str, Sequence[int]], *, version: int = ADD_NEWEST
    ) -> dict[tuple[str, int], ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=list(numbers)) for name, numbers in topics.items()
            ],
        )
        answer = self.connection.call(request, version, AddPartitionsToTxnResponse)
        return {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }

    def produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        sequence: int | None = None,
        version: int | None = None,
        attributes: int = TRANSACTIONAL,
        transactional_id: str | None = "",
    ) -> ErrorCode:
        topic_partition = (topic, partition)
        base = self._sequences.get(topic_partition, 0) if sequence is None else sequence
        records = batch(
            values,
            attributes=attributes,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=base,
            base_timestamp=now_ms(),
        )
        request = produce_request(topic, records, partition=partition)
        request.transactional_id = self.transactional_id if transactional_id == "" else transactional_id
        chosen = version or (PRODUCE_NEWEST if self.protocol == 2 else ADDS_PARTITIONS_FROM - 1)
        if chosen > ADDS_PARTITIONS_FROM:
            request.topic_data[0].topic_id = topic_metadata(self.connection, topic).topic_id
        answer = self.connection.call(request, chosen, ProduceResponse).responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE:
            self._sequences[topic_partition] = base + len(values)
        return ErrorCode(answer.error_code)

    def add_offsets(self, group: str, *, version: int = ADD_OFFSETS_NEWEST) -> ErrorCode:
        request = AddOffsetsToTxnRequest(group_id=group, **self.identity)
        return ErrorCode(self.connection.call(request, version, AddOffsetsToTxnResponse).error_code)

    def commit_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        version: int | None = None,
        metadata: str = "",
        **member: Any,
    ) -> ErrorCode:
        offset_commit = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            group_id=group,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[offset_commit])],
            **self.identity,
            **member,
        )
        chosen = (TXN_COMMIT_NEWEST if self.protocol == 2 else 4) if version is None else version
        answer = self.connection.call(request, chosen, TxnOffsetCommitResponse)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def end(self, *, commit: bool, version: int | None = None) -> ErrorCode:
        """One EndTxn; with protocol 2 the producer continues with the epoch in the response."""
        chosen = (END_NEWEST if self.protocol == 2 else BUMPS_WITH_EVERY_END_FROM - 1) if version is None else version
        answer = end_txn(self.connection, commit=commit, version=chosen, **self.identity)
        if answer.error_code == ErrorCode.NONE and chosen >= BUMPS_WITH_EVERY_END_FROM:
            self._become(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def commit(self) -> None:
        assert self.end(commit=True) == ErrorCode.NONE

    def abort(self) -> None:
        assert self.end(commit=False) == ErrorCode.NONE

    def _become(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences.clear()


def end_txn(connection: WireConnection, *, commit: bool, version: int = END_NEWEST, **identity: Any) -> EndTxnResponse:
    return connection.call(EndTxnRequest(committed=commit, **identity), version, EndTxnResponse)


def retrying(ask: Callable[[], Answer]) -> Answer:
    """Repeats the request while the previous transaction is not complete and the coordinator answers
    CONCURRENT_TRANSACTIONS."""
    answers: list[Answer] = []

    def answered() -> bool:
        answers.append(ask())
        code = answers[-1] if isinstance(answers[-1], ErrorCode) else answers[-1].error_code
        return code != ErrorCode.CONCURRENT_TRANSACTIONS

    eventually(answered)
    return answers[-1]


def described_transaction(connection: WireConnection, transactional_id: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = connection.call(request, 0, DescribeTransactionsResponse).transaction_states
    assert found.transactional_id == transactional_id
    return found


def transaction_state(connection: WireConnection, transactional_id: str) -> str:
    return described_transaction(connection, transactional_id).transaction_state


def fetch_committed(connection: WireConnection, topic: str, offset: int = 0, *, partition: int = 0) -> PartitionData:
    """The raw response to a read_committed fetch: aborted records are still in it, with the list of aborted
    transactions."""
    request = fetch_request(topic, offset, partition=partition)
    request.isolation_level = READ_COMMITTED
    answer = connection.call(request, 12, FetchResponse)
    return answer.responses[0].partitions[0]


def began(connection: WireConnection, transactional_id: str, topic: str, protocol: int, **more: int) -> Txn:
    """A producer with one record in an open transaction."""
    producer = Txn(connection, transactional_id, protocol=protocol).init(**more)
    begin(producer, topic)
    return producer


def begin(producer: Txn, topic: str) -> None:
    if producer.protocol == 1:
        assert retrying(lambda: producer.add({topic: [0]})[topic, 0]) == ErrorCode.NONE
    assert retrying(lambda: producer.produce(topic, b"in a transaction")) == ErrorCode.NONE


def wait_until_over(producer: Txn, state: str = "CompleteCommit") -> None:
    eventually(lambda: transaction_state(producer.connection, producer.transactional_id) == state)
