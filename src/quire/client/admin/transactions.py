"""Transactions as their coordinators know them, by transactional id: list, describe and terminate.

`partition_producers` has what the partitions know.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quire.client.admin.results import error
from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator, ask_coordinators, ask_every_broker
from quire.client.errors import ClientError
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import describe_transactions as transactions
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.steps import Steps, sleep

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
    started_ms: int | None  # of the last transaction, which may have ended
    partitions: list[TopicPartition]
    coordinator: int

    @property
    def under_way(self) -> bool:
        return self.state not in AT_REST


def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
) -> Steps[tuple[list[ListedTransaction], ApiError | ClientError | None]]:
    """The known transactional ids, and the error of a broker that could not be asked, whose ids are missing."""
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


def terminate_transaction(cluster: Cluster, transactional_id: str) -> Steps[None]:
    """Aborts the open transaction of a transactional id and fences its producer, as a new producer would."""
    # The time-out applies to later transactions of this producer id, and there will be none.
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while True:
        response = yield from ask_coordinator(
            cluster,
            CoordinatorType.TRANSACTION,
            transactional_id,
            request,
            InitProducerIdResponse,
            lambda answer: ErrorCode(answer.error_code) if answer.error_code in ASK_AGAIN else ErrorCode.NONE,
        )
        code = ErrorCode(response.error_code)
        if not code:
            return
        if code != ErrorCode.CONCURRENT_TRANSACTIONS or cluster.clock.monotonic_ms() > deadline_ms:
            raise ApiError(code, f"transactional id {transactional_id} was not terminated ({code.name})")
        yield from sleep(cluster.clock, backoff.next_ms())  # the open transaction is being aborted
