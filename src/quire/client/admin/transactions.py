"""Transactions: which there are, what a coordinator knows of one, what a partition knows of its producers, and ending
one that nobody ends any more.

A transaction is known in two places: to its coordinator, by transactional id, and to the leader of every partition it
has written to, by producer id. `abort_transaction` writes the marker at a leader without asking the coordinator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quire.client.admin.results import error
from quire.client.cluster import Cluster
from quire.client.coordinators import CoordinatorType, ask_coordinators, ask_every_broker
from quire.client.errors import ClientError
from quire.client.leaders import ask_leaders
from quire.client.offsets import TopicPartition
from quire.client.steps import Steps
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import describe_producers as producers
from quire.protocol.messages import describe_transactions as transactions
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

AT_REST = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


@dataclass(slots=True, frozen=True)
class ListedTransaction:
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(slots=True, frozen=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None  # of the last one, which may have ended
    partitions: list[TopicPartition]
    coordinator: int

    @property
    def under_way(self) -> bool:
        return self.state not in AT_REST


@dataclass(slots=True, frozen=True)
class ActiveProducer:
    """A producer that has written to a partition not long ago, as the partition's leader knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int  # of the last marker; -1 where there was none yet
    transaction_start_offset: int | None  # None without an open transaction


def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
) -> Steps[tuple[list[ListedTransaction], ApiError | ClientError | None]]:
    """The transactional ids that are known, and why some may be missing, if a broker could not be asked."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
    )
    answers, failure = yield from ask_every_broker(
        cluster,
        request,
        ListTransactionsResponse,
        lambda answer: answer.error_code,
        versions=(1 if longer_than_ms >= 0 else 0, 2),
    )
    for answer in answers.values():
        if answer.unknown_state_filters:
            raise ClientError(f"there is no transaction state {', '.join(answer.unknown_state_filters)}")
    listed = [
        ListedTransaction(found.transactional_id, found.producer_id, found.transaction_state, node)
        for node, answer in answers.items()
        for found in answer.transaction_states
    ]
    return sorted(listed, key=lambda found: found.transactional_id), failure


def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> Steps[dict[str, Transaction | ApiError]]:
    def read(response: transactions.DescribeTransactionsResponse) -> Mapping[str, Transaction | ApiError]:
        return {answer.transactional_id: _transaction(cluster, answer) for answer in response.transaction_states}

    return (
        yield from ask_coordinators(
            cluster,
            CoordinatorType.TRANSACTION,
            list(transactional_ids),
            lambda names: transactions.DescribeTransactionsRequest(transactional_ids=names),
            transactions.DescribeTransactionsResponse,
            read,
        )
    )


def _transaction(cluster: Cluster, answer: transactions.TransactionState) -> Transaction | ApiError:
    name = answer.transactional_id
    if answer.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"no producer with the transactional id {name} is known")
    return error(answer.error_code, None, f"transactional id {name} cannot be described") or Transaction(
        name,
        answer.producer_id,
        answer.producer_epoch,
        answer.transaction_state,
        answer.transaction_timeout_ms,
        answer.transaction_start_time_ms if answer.transaction_start_time_ms >= 0 else None,
        sorted(TopicPartition(topic.topic, partition) for topic in answer.topics for partition in topic.partitions),
        cluster.metadata.coordinators[CoordinatorType.TRANSACTION, name],
    )


def describe_producers(
    cluster: Cluster, places: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, list[ActiveProducer] | ApiError]]:
    """Who writes to these partitions, of producers with an id."""

    def build(asked: list[TopicPartition]) -> producers.DescribeProducersRequest:
        topics: dict[str, list[int]] = {}
        for place in asked:
            topics.setdefault(place.topic, []).append(place.partition)
        return producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        )

    yield from cluster.refresh(sorted({place.topic for place in places}))
    return (yield from ask_leaders(cluster, places, build, producers.DescribeProducersResponse, _active_producers))


def _active_producers(
    response: producers.DescribeProducersResponse,
) -> dict[TopicPartition, list[ActiveProducer] | ApiError]:
    results: dict[TopicPartition, list[ActiveProducer] | ApiError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = TopicPartition(topic.name, answer.partition_index)
            failed = error(answer.error_code, answer.error_message, f"the producers of {place} could not be had")
            results[place] = failed or [
                ActiveProducer(
                    found.producer_id,
                    found.producer_epoch,
                    found.last_sequence,
                    found.last_timestamp,
                    found.coordinator_epoch,
                    found.current_txn_start_offset if found.current_txn_start_offset >= 0 else None,
                )
                for found in sorted(answer.active_producers, key=lambda found: found.producer_id)
            ]
    return results


def abort_transaction(cluster: Cluster, place: TopicPartition, producer: ActiveProducer) -> Steps[None]:
    """Ends the transaction that a producer has open in one partition, as its coordinator would when it aborts it."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
        # A coordinator counts its epochs from 0; a partition that never saw a marker does not know which it is in.
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )

    def read(response: WriteTxnMarkersResponse) -> dict[TopicPartition, ApiError | None]:
        return {
            TopicPartition(topic.name, part.partition_index): error(
                part.error_code, None, f"the transaction in {topic.name}-{part.partition_index} was not aborted"
            )
            for answer in response.markers
            for topic in answer.topics
            for part in topic.partitions
        }

    results = yield from ask_leaders(
        cluster,
        [place],
        lambda _: WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        read,
        repeatable=False,
    )
    failed = results[place]
    if failed is not None:
        raise failed
