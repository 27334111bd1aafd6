"""MarkerSender: sends the markers of decided transactions to their partitions, until each partition has one.

A shard has one for as long as it is loaded. The owner gives it

    channel            sends requests to nodes, to its own one too
    clock              for back-off and timeouts
    coordinator_epoch  the leader epoch of the shard's partition: partitions refuse markers of older coordinators
    shard              has the metadata, and gets `markers_written` when all partitions have their marker

The machine passes the markers of a decision after it is committed. Each node gets one request for all markers that are
due for its partitions. If a partition refuses, has no leader or cannot be reached, its marker is sent again with
increasing back-off, or as soon as the metadata changes. If a node does not respond, the marker is sent again after
`answer_timeout_ms`. A marker that arrives twice does no harm. With a channel and a log that respond at once, all of
this has happened when `write` returns.

A partition that was deleted needs no marker. A partition that the image does not have may also be newer than the image,
if this coordinator was just elected and another one added the partition. So the image is brought up to date first.

Responses may come late, twice or out of order. A response counts if its partition still misses the marker, whatever
request it belongs to.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from quire.coordinators.runtime.channel import Channel
from quire.coordinators.transaction.pending_markers import FIRST_BACKOFF_MS, Partition, PendingMarkers
from quire.coordinators.transaction.transaction_shard import TransactionShard
from quire.coordinators.transaction.transactions import Markers
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

ANSWER_TIMEOUT_MS = 30_000.0
MOST_MARKERS = 1_000
"""Of one request."""

_VERSION = WriteTxnMarkersRequest.VERSIONS[1]

_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        # The partition has a later epoch of this producer, so the transaction is not open there.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        # A partition that cannot take markers has no transactions either.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Error codes after which a partition needs no marker. After any other, the marker is sent again."""


_Request = list[tuple[PendingMarkers, list[Partition]]]
"""The content of a request to one node, by transaction."""


class MarkerSender:
    __slots__ = (
        "_answer_timeout_ms",
        "_channel",
        "_clock",
        "_coordinator_epoch",
        "_is_sending",
        "_is_stopped",
        "_pending",
        "_shard",
        "_timer",
        "_to_send",
        "_wakes_ms",
    )

    def __init__(
        self,
        channel: Channel,
        clock: Clock,
        coordinator_epoch: int,
        shard: TransactionShard,
        *,
        answer_timeout_ms: float = ANSWER_TIMEOUT_MS,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._coordinator_epoch = coordinator_epoch
        self._shard = shard
        self._answer_timeout_ms = answer_timeout_ms
        self._pending: dict[str, PendingMarkers] = {}
        self._to_send: list[PendingMarkers] = []
        self._timer: Timer | None = None
        self._wakes_ms = 0.0
        self._is_sending = False
        self._is_stopped = False

    def write(self, decided: Iterable[Markers]) -> None:
        if self._is_stopped:
            return
        for markers in decided:
            pending = self._pending[markers.transactional_id] = PendingMarkers(markers)
            self._to_send.append(pending)
        self._send()

    def metadata_changed(self) -> None:
        """Sends at once what is backing off, or waits for the response of a node that no longer leads the partition."""
        image = self._shard.image
        for pending in self._pending.values():
            pending.backoff_ms = FIRST_BACKOFF_MS
            for partition, (_, node_id) in pending.missing.items():
                if node_id == NO_LEADER or node_id != _leader(image, partition):
                    pending.missing[partition] = (0.0, NO_LEADER)
        self._send_due()

    def stop(self) -> None:
        self._is_stopped = True
        self._pending.clear()
        self._to_send.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- Sending

    def _send(self) -> None:
        """Responses that come at once may add markers. These are sent together in the next turn of the loop."""
        if self._is_sending:
            return
        self._is_sending = True
        try:
            while self._to_send:
                pending, self._to_send = self._to_send, []
                self._send_together(pending)
        finally:
            self._is_sending = False

    def _send_together(self, all_pending: list[PendingMarkers]) -> None:
        now_ms = self._clock.monotonic_ms()
        by_node: dict[int, _Request] = {}
        for pending in all_pending:
            self._route(pending, now_ms, by_node)
        for node_id, markers in by_node.items():
            for request in _portions(markers):
                if self._is_stopped:
                    return  # A response that came at once may have stopped the sender.
                self._request(node_id, request)
        for pending in all_pending:
            self._conclude(pending)

    def _request(self, node_id: int, request: _Request) -> None:
        response = self._channel.send(node_id, self._built(request), _VERSION)
        response.when_done(partial(self._responded, request))

    def _route(self, pending: PendingMarkers, now_ms: float, by_node: dict[int, _Request]) -> None:
        image = self._shard.image
        for partition, (due_ms, _) in list(pending.missing.items()):
            if due_ms > now_ms:
                continue
            leader = _leader(image, partition)
            if leader is None and self._has_latest_image(pending):
                del pending.missing[partition]  # The partition was deleted.
            elif leader is None or leader == NO_LEADER:
                pending.back_off(partition, now_ms)
            else:
                pending.missing[partition] = (now_ms + self._answer_timeout_ms, leader)
                request = by_node.setdefault(leader, [])
                if not request or request[-1][0] is not pending:
                    request.append((pending, []))
                request[-1][1].append(partition)

    def _has_latest_image(self, pending: PendingMarkers) -> bool:
        if not pending.has_latest_image and not pending.asks_for_image:
            pending.asks_for_image = True
            answer = self._shard.when_up_to_date()
            if answer.done:
                pending.asks_for_image, pending.has_latest_image = False, answer.value
            else:
                answer.when_done(partial(self._asked_for_image, pending))
        return pending.has_latest_image

    def _asked_for_image(self, pending: PendingMarkers, has_latest_image: bool) -> None:
        pending.asks_for_image, pending.has_latest_image = False, has_latest_image
        if has_latest_image and self._pending.get(pending.markers.transactional_id) is pending:
            for partition, (_, node_id) in pending.missing.items():
                if node_id == NO_LEADER:
                    pending.missing[partition] = (0.0, NO_LEADER)
            self._send_due()

    def _built(self, request: _Request) -> WriteTxnMarkersRequest:
        return WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=pending.markers.producer_id,
                    producer_epoch=pending.markers.producer_epoch,
                    transaction_result=pending.markers.is_commit,
                    topics=_by_topic(partitions),
                    coordinator_epoch=self._coordinator_epoch,
                    transaction_version=pending.markers.transaction_version,
                )
                for pending, partitions in request
            ]
        )

    # --- Responses and timers

    def _responded(self, request: _Request, response: Message | ApiError) -> None:
        codes = _error_codes(response)
        for pending, partitions in request:
            producer_id = pending.markers.producer_id
            for partition in partitions:
                if codes.get((producer_id, *partition)) in _SETTLED:
                    pending.missing.pop(partition, None)
                else:
                    pending.back_off(partition, self._clock.monotonic_ms())
        for pending, _ in request:
            if not pending.missing or not self._is_sending:
                self._conclude(pending)

    def _conclude(self, pending: PendingMarkers) -> None:
        markers = pending.markers
        if self._pending.get(markers.transactional_id) is not pending:
            return
        if pending.missing:
            self._wake(pending.due_ms)
            return
        del self._pending[markers.transactional_id]
        self._shard.markers_written(markers)

    def _wake(self, when_ms: float) -> None:
        """Sets the timer, if none fires by `when_ms`."""
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
        for pending in self._pending.values():
            if pending.is_due(now_ms):
                pending.slow_down()
                self._to_send.append(pending)
        self._send()
        if self._pending and not self._is_sending:
            self._wake(min(pending.due_ms for pending in self._pending.values()))


def _leader(image: ClusterImage, partition: Partition) -> int | None:
    """The leader of the partition, NO_LEADER while there is none, None if the partition does not exist."""
    topic = image.topic(partition[0])
    found = None if topic is None else topic.partitions.get(partition[1])
    return None if found is None else found.leader


def _portions(request: _Request) -> Iterator[_Request]:
    """Divides a large request: a coordinator may load very many decided transactions."""
    portion: _Request = []
    room = MOST_MARKERS
    for pending, partitions in request:
        for start in range(0, len(partitions), MOST_MARKERS):
            part = partitions[start : start + MOST_MARKERS]
            if len(part) > room:
                yield portion
                portion, room = [], MOST_MARKERS
            portion.append((pending, part))
            room -= len(part)
    yield portion


def _by_topic(partitions: list[Partition]) -> list[WritableTxnMarkerTopic]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]


def _error_codes(response: Message | ApiError) -> dict[tuple[int, str, int], int]:
    """By producer id and partition; empty if the request failed as a whole."""
    if not isinstance(response, WriteTxnMarkersResponse):
        return {}
    return {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
