"""Partitions that transactions write to, and the channel to them: real producer state, logs in memory, faults.

A partition verifies, fences and recognises repeated markers as a real one does, because the same code decides. The
channel delivers at once unless `holding`: then it keeps requests, and the answers to them, until the test delivers them
(once, twice, in any order) or loses them.
"""

from collections.abc import Callable
from typing import NamedTuple

from quire.pending import Pending
from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.protocol.records import Record, build_batch, read_header
from quire.protocol.schema import Message
from quire.replication.verification_guards import VerificationGuard, VerificationGuards
from quire.storage.producers.end_marker import EndMarker, build_end_marker
from quire.storage.producers.producer_state import ProducerState

Name = tuple[str, int]


def shown(name: Name) -> str:
    return f"{name[0]}-{name[1]}"


class Entry(NamedTuple):
    """A batch with what a producer wrote, or a marker."""

    producer_id: int
    producer_epoch: int
    what: str
    """`COMMIT`, `ABORT`, or the number of its transaction."""

    @property
    def is_marker(self) -> bool:
        return self.what in ("COMMIT", "ABORT")


class SimPartition:
    def __init__(self, name: Name, told: Callable[[str], None]) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self._told = told
        self._producers = ProducerState()
        self._guards = VerificationGuards()

    def guard(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool) -> VerificationGuard:
        """Before the coordinator is asked whether the producer may write here."""
        return self._guards.acquire(producer_id, producer_epoch, bumps_epoch=bumps_epoch)

    def append(self, guard: VerificationGuard, what: str) -> ErrorCode:
        """The coordinator has confirmed it."""
        is_valid = guard.is_valid
        guard.release()
        if not is_valid:
            return ErrorCode.INVALID_TXN_STATE
        batch = build_batch(
            [Record(0, 0, None, what.encode())],
            base_offset=len(self.entries),
            producer_id=guard.producer_id,
            producer_epoch=guard.producer_epoch,
            transactional=True,
        )
        header = read_header(batch)
        try:
            self._producers.check(header)
        except ApiError as error:
            return error.code
        self._producers.update(header)
        self.entries.append(Entry(guard.producer_id, guard.producer_epoch, what))
        return ErrorCode.NONE

    def refuse(self, guard: VerificationGuard) -> None:
        guard.release()

    def end(self, marker: WritableTxnMarker) -> ErrorCode:
        bumps_epoch = marker.transaction_version >= 2
        try:
            is_new = self._producers.check_end(
                marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, bumps_epoch=bumps_epoch
            )
        except ApiError as error:
            return error.code
        if not is_new:
            return ErrorCode.NONE
        self._guards.revoke(marker.producer_id, marker.producer_epoch, bumps_epoch=bumps_epoch)
        batch = build_end_marker(
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=0,
        )
        header = read_header(batch)
        self._producers.end_transaction(header, EndMarker(not marker.transaction_result, marker.coordinator_epoch))
        what = "COMMIT" if marker.transaction_result else "ABORT"
        self._told(f"{shown(self.name)}: {what} {marker.producer_id}:{marker.producer_epoch}")
        self.entries.append(Entry(marker.producer_id, marker.producer_epoch, what))
        return ErrorCode.NONE

    @property
    def is_open(self) -> bool:
        return self._producers.first_open_transaction_offset is not None

    def verdict(self, entry: Entry, position: int) -> str:
        """How the transaction ended that wrote this; `open` if it has not."""
        for later in self.entries[position:]:
            if later.is_marker and later.producer_id == entry.producer_id:
                return later.what
        return "open"


class _Sent(NamedTuple):
    node_id: int
    request: WriteTxnMarkersRequest
    answer: Pending[Message | ApiError]


class SimChannel:
    """`partition` finds the partition of a request; None if the node does not know it."""

    def __init__(self, partition: Callable[[Name], SimPartition | None], told: Callable[[str], None]) -> None:
        self.holding = False
        self.down: set[int] = set()
        self.requests: list[_Sent] = []
        self.answers: list[tuple[_Sent, Message | ApiError]] = []
        self.loses_answers = False
        self._partition = partition
        self._told = told

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        assert isinstance(request, WriteTxnMarkersRequest)
        out = bytearray()
        encoder(type(request), version)(request, out)
        decoded = decoder(WriteTxnMarkersRequest, version)(bytes(out), 0)[0]
        sent = _Sent(node_id, decoded, Pending())
        for marker in decoded.markers:
            what = "commit" if marker.transaction_result else "abort"
            names = " ".join(shown((topic.name, index)) for topic in marker.topics for index in topic.partition_indexes)
            self._told(f"-> node {node_id}: {what} {marker.producer_id}:{marker.producer_epoch} in {names}")
        self.requests.append(sent)
        if not self.holding:
            self.deliver(len(self.requests) - 1)
        return sent.answer

    def deliver(self, position: int = 0, *, keep: bool = False) -> None:
        """Delivers the request; with `keep` it stays and will be delivered again."""
        sent = self.requests[position] if keep else self.requests.pop(position)
        if sent.node_id in self.down:
            self._told(f"node {sent.node_id} cannot be reached")
            self.answers.append((sent, ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "down")))
        else:
            self.answers.append((sent, self._handle(sent.request)))
        if self.loses_answers:
            self.lose_answer(len(self.answers) - 1)
        elif not self.holding:
            self.answer(len(self.answers) - 1)

    def answer(self, position: int = 0) -> None:
        sent, response = self.answers.pop(position)
        sent.answer.complete_once(response)

    def lose_answer(self, position: int = 0) -> None:
        sent, _ = self.answers.pop(position)
        self._told(f"the answer of node {sent.node_id} is lost")

    def lose(self, position: int = 0) -> None:
        sent = self.requests.pop(position)
        self._told(f"the request to node {sent.node_id} is lost")

    def _handle(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=self._end((topic.name, index), marker)
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def _end(self, name: Name, marker: WritableTxnMarker) -> ErrorCode:
        partition = self._partition(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else partition.end(marker)
        if code is not ErrorCode.NONE:
            self._told(f"{shown(name)}: {code.name}")
        return code
