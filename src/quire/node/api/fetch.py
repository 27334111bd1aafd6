"""Fetch: read committed record batches as file slices, or wait until there are enough of them.

A fetch is answered as soon as `min_bytes` can be sent, any partition has an error, or `max_wait_ms` has passed. Batches
are sent whole and closed; the last one may be cut by the size limit, but a batch larger than the limit is sent when it
is the first, so that nobody gets stuck on it. What this process has neither written nor read before is checked first,
in jobs. Fetch sessions are kept in `quire.node.fetch_sessions`.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchPartition, FetchSession, PartitionKey
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_fetch import fetch_response, partition_data, topic_response
from quire.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from quire.protocol.uuids import ZERO
from quire.replication.partition import Partition
from quire.replication.waiting import FetchWait
from quire.storage import LogPosition
from quire.storage.range_check import NotCheckedError, RangeCheck

if TYPE_CHECKING:
    from quire.node.node import Node

# An enum's member is looked up anew each time it is named by its class.
READ = Operation.READ
TOPIC = Resource.TOPIC

READ_COMMITTED = 1
FIRST_VERSION_WITH_LEADER_HINTS = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13
MOST_CHECKS = 3
"""How often a fetch waits for checks: once, unless segments come and go meanwhile."""
FEW_PARTITIONS = 100
"""Up to so many are read in one go: that takes about a millisecond."""


def handle(node: "Node", context: Context, request: FetchRequest) -> Work[FetchResponse]:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, "this node leads partitions that have no other replica")
    session, partitions = _session(node, context, request)
    return _Fetch(node, context, request, session, partitions).work()


def refuse(request: FetchRequest, error: ApiError) -> FetchResponse:
    """Errors of sessions concern the whole request; others are told partition by partition."""
    if error.code in (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ):
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(wanted.partition, error.code) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _session(node: "Node", context: Context, request: FetchRequest) -> tuple[FetchSession | None, list[FetchPartition]]:
    """The session this fetch belongs to, if any, and all partitions it is about."""
    now_ms = node.clock.monotonic_ms()
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    wanted = [
        FetchPartition(
            topic.topic_id,
            topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(wanted) > 1:
        # Named twice is served once, as it is in a session: otherwise a request could have one batch read without end.
        wanted = list({partition.key: partition for partition in wanted}.values())
    if request.session_epoch == FINAL_EPOCH:
        node.fetch_sessions.close(request.session_id)
        return None, wanted
    if request.session_epoch == INITIAL_EPOCH:
        return node.fetch_sessions.open(request.session_id, by_id, wanted, now_ms), wanted
    session = node.fetch_sessions.resume(request.session_id, request.session_epoch, by_id, now_ms)
    node.fetch_sessions.update(session, wanted, _forgotten(request))
    return session, list(session.partitions.values())


def _forgotten(request: FetchRequest) -> list[PartitionKey]:
    return [
        (topic.topic_id, topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]


class _Fetch:
    """One fetch request on its way: read, and read once more whenever it had to wait."""

    __slots__ = (
        "_answers",
        "_bytes",
        "_context",
        "_failed",
        "_followed",
        "_in_slices",
        "_node",
        "_partitions",
        "_request",
        "_seen_ends",
        "_session",
        "_to_send",
        "_unchecked",
    )

    def __init__(
        self,
        node: "Node",
        context: Context,
        request: FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
    ) -> None:
        self._node = node
        self._context = context
        self._request = request
        self._session = session
        self._partitions = partitions
        self._in_slices = len(partitions) > FEW_PARTITIONS
        self._answers: list[tuple[FetchPartition, PartitionData]] = []
        self._followed: list[Partition] = []
        self._seen_ends: list[LogPosition] = []
        """In slices: how far each of those followed could be read when it was."""
        self._bytes = 0
        self._failed = False
        self._to_send: list[tuple[Partition, PartitionData]] = []
        """In slices: the answers that have records."""
        self._unchecked: list[tuple[Partition, RangeCheck]] = []

    def work(self) -> Work[FetchResponse]:
        min_bytes = self._request.min_bytes
        may_wait = self._request.max_wait_ms > 0
        checks_left = MOST_CHECKS
        while True:
            yield from self._read()
            if self._unchecked and checks_left and not self._failed and self._bytes < max(min_bytes, 1):
                checks_left -= 1
                yield self._when_checked()
                continue
            for partition, check in self._unchecked:
                self._node.partitions.check(partition, check, _nothing)
            if self._failed or self._bytes >= min_bytes or not self._followed or not may_wait:
                return (yield from self._response())
            may_wait = False
            # Where a disk has just failed, reading again tells which partitions are offline.
            with suppress(ApiError):
                yield self._when_there_is_more()

    def _read(self) -> Work[None]:
        self._answers = []
        self._followed = []
        self._seen_ends = []
        self._to_send = []
        self._bytes = 0
        self._unchecked = []
        for wanted in self._partitions:
            self._answers.append((wanted, self._read_partition(wanted)))
            if self._in_slices:
                yield None

    def _when_checked(self) -> Pending[None]:
        """Done when what has to be checked before it can be sent is checked."""
        checked: Pending[None] = Pending()
        missing = len(self._unchecked)

        def one_more() -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                checked.complete_once(None)

        for partition, check in self._unchecked:
            self._node.partitions.check(partition, check, one_more)
        return checked

    def _when_there_is_more(self) -> Pending[None]:
        """Done when there is enough to send, or the client has waited long enough."""
        more: Pending[None] = Pending()

        def finish() -> None:
            more.complete_once(None)

        wait = FetchWait(
            self._followed,
            self._request.min_bytes - self._bytes,
            finish,
            committed_only=self._request.isolation_level == READ_COMMITTED,
            seen_ends=self._seen_ends if self._in_slices else None,
        )
        more.on_abandoned = wait.cancel
        wait.start(self._node.clock, self._request.max_wait_ms)
        return more

    def _response(self) -> Work[FetchResponse]:
        session = self._session
        incremental = session is not None and self._request.session_epoch > INITIAL_EPOCH
        response = fetch_response(session.id if session is not None else NO_SESSION)
        served = []
        for wanted, answer in self._answers:
            has_data = bool(answer.records) or answer.error_code != ErrorCode.NONE or answer.diverging_epoch.epoch >= 0
            if has_data:
                served.append(wanted)
            if wanted.has_news(answer.high_watermark, answer.log_start_offset, has_data) or not incremental:
                _add(response, wanted, answer)
            if self._in_slices:
                yield None
        if session is not None:
            session.rotate(served)
        if self._in_slices:
            self._leave_out_closed()
        return response

    def _leave_out_closed(self) -> None:
        """A topic that was deleted since it was read has no file to send from any more."""
        for partition, answer in self._to_send:
            if partition.log.closed:
                answer.records = b""
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _read_partition(self, wanted: FetchPartition) -> PartitionData:
        node = self._node
        try:
            partition = node.partitions.leader(wanted.topic, wanted.topic_id, wanted.index)
            if not node.authorizer.allows(self._context, READ, TOPIC, partition.topic):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"reading {partition.topic} is not allowed")
            partition.check_leader_epoch(wanted.current_leader_epoch)
            return self._read_from(partition, wanted)
        except ApiError as error:
            self._failed = True
            answer = _failed(wanted.index, error.code)
            hint_wanted = error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
            if hint_wanted and self._context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
                leader_id, epoch = node.partitions.current_leader(wanted.topic, wanted.topic_id, wanted.index)
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
            return answer

    def _read_from(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        request = self._request
        committed_only = request.isolation_level == READ_COMMITTED
        answer = partition_data(
            wanted.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            [] if committed_only else None,
            b"",
        )
        if wanted.last_fetched_epoch >= 0:
            diverging = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
            if diverging is not None:
                self._failed = True
                answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                return answer
        room = min(request.max_bytes, self._node.fetch_max_bytes) - self._bytes
        self._followed.append(partition)
        if self._in_slices:
            self._seen_ends.append(partition.readable_end(committed_only))
        try:
            data = partition.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, max(room, 0)),
                at_least_one_batch=self._bytes == 0,
                committed_only=committed_only,
            )
        except NotCheckedError as error:
            self._unchecked.append((partition, error.check))
            data = None
        if data is not None:
            answer.records = [data]
            if self._in_slices:
                self._to_send.append((partition, answer))
            if committed_only:
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                    for aborted in partition.aborted_transactions(wanted.fetch_offset, data)
                ]
            self._bytes += len(data)
        return answer


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=[], records=b""
    )


def _add(response: FetchResponse, wanted: FetchPartition, answer: PartitionData) -> None:
    """Puts a partition under its topic; neighbours of one topic share an entry."""
    topics = response.responses
    if not topics or topics[-1].topic != wanted.topic or topics[-1].topic_id != wanted.topic_id:
        topics.append(topic_response(wanted.topic, wanted.topic_id or ZERO))
    topics[-1].partitions.append(answer)


def _nothing() -> None:
    pass
