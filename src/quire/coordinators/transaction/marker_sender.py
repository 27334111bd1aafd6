"""MarkerSender: brings the markers of decided transactions to their partitions, however often it takes.

One for each shard, for as long as the shard is loaded. Its owner gives it

    channel            how nodes are reached, the own one too
    clock              for back-off and timeouts
    image              the cluster as committed: who leads a partition, and whether it still exists
    coordinator_epoch  the leader epoch of the shard's partition: what older coordinators send is refused by partitions
    run                the door back into the shard: `run(operation)` has the shard run `operation(machine, now_ms)` as
                       it would a request. It raises nothing; where the shard is not active, it does nothing.

The machine hands over markers once the decision to write them is committed. They are sent to the leaders of their
partitions, one request to each node for all that is to be sent at that moment. A partition that refuses, has no leader
or cannot be reached is tried again, ever more slowly, or as soon as the metadata changes; one that does not answer is
sent its marker again after `answer_timeout_ms`. A marker that arrives twice does no harm. When no partition is missing
`TransactionMachine.markers_written` goes through the door. With a channel and a log that answer at once, all of that
has happened when `write` returns.

Answers may come late, twice or out of order: one counts if its partition is still missing, whatever request it is for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from quire.coordinators.runtime.channel import Channel
from quire.coordinators.runtime.result import Result
from quire.coordinators.transaction.transactions import Markers
from quire.coordinators.transaction.unsettled import FIRST_BACKOFF_MS, Partition, Unsettled
from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import NO_LEADER
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.protocol.schema import Message
from quire.seams import Clock, Timer

if TYPE_CHECKING:
    from quire.coordinators.transaction.machine import TransactionMachine

Operation = Callable[["TransactionMachine", int], Result[None]]
Run = Callable[[Operation], None]

ANSWER_TIMEOUT_MS = 30_000.0
MOST_MARKERS = 1_000
"""In one request."""

_VERSION = WriteTxnMarkersRequest.VERSIONS[1]

_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        # The partition has seen a later epoch of this producer, which it could not have with this transaction open.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        # Where markers cannot be written there are no transactions either.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Answers after which a partition needs no marker any more. Whatever else comes is tried again."""


_Request = list[tuple[Unsettled, list[Partition]]]
"""What is sent to one node, transaction by transaction."""


class MarkerSender:
    __slots__ = (
        "_answer_timeout_ms",
        "_channel",
        "_clock",
        "_coordinator_epoch",
        "_image",
        "_is_sending",
        "_is_stopped",
        "_run",
        "_timer",
        "_to_send",
        "_unsettled",
        "_wakes_ms",
    )

    def __init__(
        self,
        channel: Channel,
        clock: Clock,
        image: Callable[[], ClusterImage],
        coordinator_epoch: int,
        run: Run,
        *,
        answer_timeout_ms: float = ANSWER_TIMEOUT_MS,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._image = image
        self._coordinator_epoch = coordinator_epoch
        self._run = run
        self._answer_timeout_ms = answer_timeout_ms
        self._unsettled: dict[str, Unsettled] = {}
        self._to_send: list[Unsettled] = []
        self._timer: Timer | None = None
        self._wakes_ms = 0.0
        self._is_sending = False
        self._is_stopped = False

    def write(self, decided: Iterable[Markers]) -> None:
        if self._is_stopped:
            return
        for markers in decided:
            unsettled = self._unsettled[markers.transactional_id] = Unsettled(markers)
            self._to_send.append(unsettled)
        self._send()

    def metadata_changed(self) -> None:
        """What waits for better times, or for the answer of a node that no longer leads the partition, is sent now."""
        image = self._image()
        for unsettled in self._unsettled.values():
            unsettled.backoff_ms = FIRST_BACKOFF_MS
            for partition, (_, node_id) in unsettled.missing.items():
                if node_id == NO_LEADER or node_id != _leader(image, partition):
                    unsettled.missing[partition] = (0.0, NO_LEADER)
        self._send_due()

    def stop(self) -> None:
        self._is_stopped = True
        self._unsettled.clear()
        self._to_send.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Sending

    def _send(self) -> None:
        """What comes while something is being sent, because answers came at once, is sent together afterwards."""
        if self._is_sending:
            return
        self._is_sending = True
        try:
            while self._to_send:
                unsettled, self._to_send = self._to_send, []
                self._send_together(unsettled)
        finally:
            self._is_sending = False

    def _send_together(self, all_unsettled: list[Unsettled]) -> None:
        now_ms = self._clock.monotonic_ms()
        by_node: dict[int, _Request] = {}
        for unsettled in all_unsettled:
            self._route(unsettled, now_ms, by_node)
        for node_id, markers in by_node.items():
            for request in _portions(markers):
                if self._is_stopped:
                    return  # An answer that came at once may have led to that.
                self._request(node_id, request)
        for unsettled in all_unsettled:
            self._conclude(unsettled)

    def _request(self, node_id: int, request: _Request) -> None:
        answer = self._channel.send(node_id, self._built(request), _VERSION)
        answer.when_done(lambda answer: self._answered(request, answer))

    def _route(self, unsettled: Unsettled, now_ms: float, by_node: dict[int, _Request]) -> None:
        image = self._image()
        for partition, (due_ms, _) in list(unsettled.missing.items()):
            if due_ms > now_ms:
                continue
            leader = _leader(image, partition)
            if leader is None:
                del unsettled.missing[partition]  # The partition was deleted, and what the transaction wrote with it.
            elif leader == NO_LEADER:
                unsettled.back_off(partition, now_ms)
            else:
                unsettled.missing[partition] = (now_ms + self._answer_timeout_ms, leader)
                request = by_node.setdefault(leader, [])
                if not request or request[-1][0] is not unsettled:
                    request.append((unsettled, []))
                request[-1][1].append(partition)

    def _built(self, request: _Request) -> WriteTxnMarkersRequest:
        return WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=unsettled.markers.producer_id,
                    producer_epoch=unsettled.markers.producer_epoch,
                    transaction_result=unsettled.markers.is_commit,
                    topics=_by_topic(partitions),
                    coordinator_epoch=self._coordinator_epoch,
                    transaction_version=unsettled.markers.transaction_version,
                )
                for unsettled, partitions in request
            ]
        )

    # Answers, and none

    def _answered(self, request: _Request, answer: Message | ApiError) -> None:
        verdicts = _verdicts(answer)
        for unsettled, partitions in request:
            producer_id = unsettled.markers.producer_id
            for partition in partitions:
                if verdicts.get((producer_id, *partition)) in _SETTLED:
                    unsettled.missing.pop(partition, None)
                else:
                    unsettled.back_off(partition, self._clock.monotonic_ms())
        for unsettled, _ in request:
            if not unsettled.missing or not self._is_sending:
                self._conclude(unsettled)

    def _conclude(self, unsettled: Unsettled) -> None:
        markers = unsettled.markers
        if self._unsettled.get(markers.transactional_id) is not unsettled:
            return
        if unsettled.missing:
            self._wake(unsettled.due_ms)
            return
        del self._unsettled[markers.transactional_id]
        self._run(lambda machine, now_ms: machine.markers_written(markers, now_ms))

    def _wake(self, when_ms: float) -> None:
        """Looks around no later than `when_ms`."""
        if self._timer is not None:
            if self._wakes_ms <= when_ms:
                return
            self._timer.cancel()
        self._wakes_ms = when_ms
        self._timer = self._clock.call_later(when_ms - self._clock.monotonic_ms(), self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._send_due()

    def _send_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for unsettled in self._unsettled.values():
            if unsettled.is_due(now_ms):
                unsettled.slow_down()
                self._to_send.append(unsettled)
        self._send()
        if self._unsettled and not self._is_sending:
            self._wake(min(unsettled.due_ms for unsettled in self._unsettled.values()))


def _leader(image: ClusterImage, partition: Partition) -> int | None:
    """The node that leads the partition, NO_LEADER while there is none, None if there is no such partition."""
    topic = image.topic(partition[0])
    found = None if topic is None else topic.partitions.get(partition[1])
    return None if found is None else found.leader


def _portions(request: _Request) -> Iterator[_Request]:
    """Requests that a node can take: a coordinator may be loaded with very many decided transactions."""
    portion: _Request = []
    room = MOST_MARKERS
    for unsettled, partitions in request:
        for start in range(0, len(partitions), MOST_MARKERS):
            part = partitions[start : start + MOST_MARKERS]
            if len(part) > room:
                yield portion
                portion, room = [], MOST_MARKERS
            portion.append((unsettled, part))
            room -= len(part)
    yield portion


def _by_topic(partitions: list[Partition]) -> list[WritableTxnMarkerTopic]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]


def _verdicts(answer: Message | ApiError) -> dict[tuple[int, str, int], int]:
    """Error codes by producer id and partition; none where the node could not be asked."""
    if not isinstance(answer, WriteTxnMarkersResponse):
        return {}
    return {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
