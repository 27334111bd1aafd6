"""Asks a transaction's coordinator before the first of its records is appended to a partition (KIP-890).

Producers of transaction protocol 2 add a partition to their transaction by writing to it: this broker adds it for them,
and the write waits for the response. Older producers have added it already, and the coordinator only confirms. Either
way a late or forged write cannot begin a transaction that no coordinator ends. `quire.replication.verification_guards`
covers the time between the response and the append.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from quire.protocol.schema import Message
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import Partition
from quire.replication.verification_guards import VerificationGuard
from quire.seams import Timer

if TYPE_CHECKING:
    from quire.node.node import Node

VERSION = 5
LONGEST_WAIT_MS = 30_000
FIRST_RETRY_MS = 1
"""Each further retry waits twice as long, up to `add.partitions.to.txn.retry.backoff.ms`."""

_RETRIABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.BROKER_NOT_AVAILABLE,
)
"""Errors after which a client of the coordinator retries; a producer gets a retriable error that it knows."""

Verifications = dict[Partition, VerificationGuard | ApiError]
"""The coordinator's response for each partition: a guard to append with, or why the append is refused."""

_Codes = dict[tuple[str, int], int]
"""Error codes by topic and partition."""


class TransactionalProducer:
    """The producer that wants to write, and the transaction."""

    __slots__ = ("bumps_epoch", "epoch", "knows_abortable", "producer_id", "transactional_id")

    def __init__(
        self, transactional_id: str, producer_id: int, epoch: int, *, bumps_epoch: bool, knows_abortable: bool
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.bumps_epoch = bumps_epoch
        """Speaks transaction protocol 2."""
        self.knows_abortable = knows_abortable
        """Understands TRANSACTION_ABORTABLE; other producers get INVALID_TXN_STATE instead (KIP-890)."""


def verify(node: "Node", producer: TransactionalProducer, leaders: list[LeaderRole]) -> Pending[Verifications]:
    """Asks the coordinator about the partitions of `leaders`, in which the transaction is not open yet.

    The caller must release the guards in the result after the append.
    """
    return _Verification(node, producer, leaders).start()


def release_guards(verifications: Verifications) -> None:
    for verified in verifications.values():
        if isinstance(verified, VerificationGuard):
            verified.release()


class _Verification:
    __slots__ = ("_completed", "_guards", "_node", "_producer", "_result", "_retry_after_ms", "_started_ms", "_timer")

    def __init__(self, node: "Node", producer: TransactionalProducer, leaders: list[LeaderRole]) -> None:
        self._node = node
        self._producer = producer
        # Acquired before the request is sent: a marker that ends the transaction from now on revokes them.
        self._guards = {
            leader.partition: leader.guards.acquire(
                producer.producer_id, producer.epoch, bumps_epoch=producer.bumps_epoch
            )
            for leader in leaders
        }
        self._result: Pending[Verifications] = Pending()
        self._completed = False
        self._timer: Timer | None = None
        self._retry_after_ms = FIRST_RETRY_MS
        self._started_ms = node.clock.monotonic_ms()

    def start(self) -> Pending[Verifications]:
        self._send()
        if not self._completed and self._timer is None:
            self._timer = self._node.clock.call_later(LONGEST_WAIT_MS, self._time_out)
        return self._result

    def _send(self) -> None:
        try:
            coordinator_id = self._node.transaction_coordinator_id(self._producer.transactional_id)
        except ApiError as error:
            self._received(error)
            return
        self._node.channel.send(coordinator_id, self._request(), VERSION).when_done(self._received)

    def _request(self) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for partition in self._guards:
            topics.setdefault(partition.topic, []).append(partition.index)
        producer = self._producer
        return AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=producer.transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    verify_only=not producer.bumps_epoch,
                    topics=[AddPartitionsToTxnTopic(name=name, partitions=held) for name, held in topics.items()],
                )
            ]
        )

    def _received(self, response: Message | ApiError) -> None:
        if self._completed:
            return
        codes = _codes_of(response)
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and self._may_retry():
            # The last transaction's markers are not committed yet, which takes a few milliseconds with replicas.
            longest_ms = self._node.config.get_int("add.partitions.to.txn.retry.backoff.ms")
            self._set_timer(min(self._retry_after_ms, longest_ms), self._retry)
            self._retry_after_ms *= 2
            return
        # A partition that the response does not name is not confirmed.
        otherwise = response.code if isinstance(response, ApiError) else ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._complete(codes, otherwise)

    def _may_retry(self) -> bool:
        node = self._node
        retry_max_ms = node.config.get_int("add.partitions.to.txn.retry.backoff.max.ms")
        return self._producer.bumps_epoch and node.clock.monotonic_ms() < self._started_ms + retry_max_ms

    def _retry(self) -> None:
        self._set_timer(LONGEST_WAIT_MS, self._time_out)
        self._send()

    def _set_timer(self, delay_ms: int, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._node.clock.call_later(delay_ms, action)

    def _time_out(self) -> None:
        self._complete({}, ErrorCode.REQUEST_TIMED_OUT)

    def _complete(self, codes: _Codes, otherwise: int) -> None:
        if self._completed:
            return
        self._completed = True
        if self._timer is not None:
            self._timer.cancel()
        verifications: Verifications = {}
        for partition, guard in self._guards.items():
            code = codes.get((partition.topic, partition.index), otherwise)
            if code == ErrorCode.NONE:
                verifications[partition] = guard
            else:
                guard.release()
                verifications[partition] = _refusal(ErrorCode(code), self._producer)
        self._result.complete(verifications)


def _codes_of(response: Message | ApiError) -> _Codes:
    if isinstance(response, ApiError):
        return {}
    assert isinstance(response, AddPartitionsToTxnResponse)
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }


def _refusal(code: ErrorCode, producer: TransactionalProducer) -> ApiError:
    if code in _RETRIABLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not producer.bumps_epoch):
        # Producers of protocol 1 do not expect CONCURRENT_TRANSACTIONS in a produce response.
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS, "the transaction's coordinator cannot agree to this now: try again"
        )
    if code is ErrorCode.PRODUCER_FENCED:
        # A produce response has INVALID_PRODUCER_EPOCH for a fenced producer.
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not producer.knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return ApiError(code, f"the transaction's coordinator refused: {code.name}")
