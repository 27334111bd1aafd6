"""Asks a transaction's coordinator before the first of its records is appended to a partition (KIP-890).

Producers of transaction protocol 2 add a partition to their transaction by writing to it: the coordinator is told, and
the write waits for that. Older ones have added it before, and the coordinator only confirms. Either way a late or
forged write cannot open a transaction that nobody would end.
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
from quire.replication.admissions import Admission
from quire.replication.partition import Partition
from quire.seams import Timer

if TYPE_CHECKING:
    from quire.node.node import Node

VERSION = 5
LONGEST_WAIT_MS = 30_000

_ASK_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.BROKER_NOT_AVAILABLE,
)
"""What the coordinator's clients would try again; whoever writes is told so in words that every producer knows."""

Verdicts = dict[Partition, Admission | ApiError]
Codes = dict[tuple[str, int], int]
"""Error codes by topic and partition."""


class Producer:
    """Who wants to write, and in which transaction."""

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
        """Understands TRANSACTION_ABORTABLE; others are told INVALID_TXN_STATE instead (KIP-890)."""


def admit(node: "Node", producer: Producer, partitions: list[Partition]) -> Pending[Verdicts]:
    """Asks for those partitions in which the transaction is not open yet; an answer for each of these.

    Whoever gets an Admission gives it back to its partition when the append is done.
    """
    return _Question(node, producer, partitions).ask()


class _Question:
    __slots__ = ("_admissions", "_answered", "_asked_ms", "_node", "_producer", "_timer", "_verdicts")

    def __init__(self, node: "Node", producer: Producer, partitions: list[Partition]) -> None:
        self._node = node
        self._producer = producer
        # Taken before asking: whatever ends the transaction from now on takes them away.
        self._admissions = {
            partition: partition.admissions.take(producer.producer_id, producer.epoch, bumps_epoch=producer.bumps_epoch)
            for partition in partitions
        }
        self._verdicts: Pending[Verdicts] = Pending()
        self._answered = False
        self._timer: Timer | None = None
        self._asked_ms = node.clock.monotonic_ms()

    def ask(self) -> Pending[Verdicts]:
        self._send()
        if not self._answered and self._timer is None:
            self._timer = self._node.clock.call_later(LONGEST_WAIT_MS, self._time_out)
        return self._verdicts

    def _send(self) -> None:
        try:
            coordinator_id = self._node.transaction_coordinator_id(self._producer.transactional_id)
        except ApiError as error:
            self._received(error)
            return
        self._node.channel.send(coordinator_id, self._request(), VERSION).when_done(self._received)

    def _request(self) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for partition in self._admissions:
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

    def _received(self, answer: Message | ApiError) -> None:
        if self._answered:
            return
        codes = _codes_of(answer)
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and self._may_ask_again():
            # The markers of the transaction before are still on their way.
            delay_ms = self._node.config.get_int("add.partitions.to.txn.retry.backoff.ms")
            self._set_timer(delay_ms, self._send_again)
            return
        # A partition that the answer does not name has not been agreed to.
        otherwise = answer.code if isinstance(answer, ApiError) else ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._finish(codes, otherwise)

    def _may_ask_again(self) -> bool:
        node = self._node
        retry_max_ms = node.config.get_int("add.partitions.to.txn.retry.backoff.max.ms")
        return self._producer.bumps_epoch and node.clock.monotonic_ms() < self._asked_ms + retry_max_ms

    def _send_again(self) -> None:
        self._set_timer(LONGEST_WAIT_MS, self._time_out)
        self._send()

    def _set_timer(self, delay_ms: int, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._node.clock.call_later(delay_ms, action)

    def _time_out(self) -> None:
        self._finish({}, ErrorCode.REQUEST_TIMED_OUT)

    def _finish(self, codes: Codes, otherwise: int) -> None:
        if self._answered:
            return
        self._answered = True
        if self._timer is not None:
            self._timer.cancel()
        verdicts: Verdicts = {}
        for partition, admission in self._admissions.items():
            code = codes.get((partition.topic, partition.index), otherwise)
            if code == ErrorCode.NONE:
                verdicts[partition] = admission
            else:
                partition.admissions.give_back(admission)
                verdicts[partition] = _refusal(ErrorCode(code), self._producer)
        self._verdicts.complete(verdicts)


def give_back(verdicts: Verdicts) -> None:
    for partition, verdict in verdicts.items():
        if isinstance(verdict, Admission):
            partition.admissions.give_back(verdict)


def _codes_of(answer: Message | ApiError) -> Codes:
    if isinstance(answer, ApiError):
        return {}
    assert isinstance(answer, AddPartitionsToTxnResponse)
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }


def _refusal(code: ErrorCode, producer: Producer) -> ApiError:
    if code in _ASK_AGAIN or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not producer.bumps_epoch):
        # Producers of protocol 1 do not expect to be told of the transaction before in the answer to a write either.
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS, "the transaction's coordinator cannot agree to this now: try again"
        )
    if code is ErrorCode.PRODUCER_FENCED:
        # As partitions call it; producers expect no other word in the answer to a write.
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not producer.knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return ApiError(code, f"the transaction's coordinator refused: {code.name}")
