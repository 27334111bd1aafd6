"""The active controller: takes requests about the cluster, writes records, and answers when they are committed.

It keeps two pictures of the cluster. The loader's is what is committed, and what the rest of the node acts on. The
controller's own runs ahead of it by what it has written and nobody has confirmed yet, so that one request sees the
effects of the one before without waiting for the disk; it exists only while this node leads. Every request is checked
against it, turned into one atomic batch by a manager, and answered in order.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TypeVar

from quire.config.broker_config import BrokerConfig
from quire.controller import (
    brokers,
    configs,
    create_partitions,
    create_topics,
    delete_topics,
    features,
    producer_ids,
    quorum,
    refusals,
)
from quire.controller.bootstrap import activation_records, read_bootstrap
from quire.controller.heartbeats import Heartbeats
from quire.controller.log_config import log_settings, static_voters
from quire.controller.result import Portions, Result
from quire.controller.write_queue import WriteQueue
from quire.metadata.delta import ImageDelta
from quire.metadata.features import UnsupportedMetadataError, record_version
from quire.metadata.image import ClusterImage
from quire.metadata.loader import MetadataLoader
from quire.metadata.replay import replay
from quire.metadata.snapshot import records_of
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from quire.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quire.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.metadata_records import NoOpRecord
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.protocol.schema import Message
from quire.raft.errors import MetadataLogError
from quire.raft.log_store import CommittedBatch
from quire.raft.metadata_log import MetadataLog, SnapshotContent
from quire.raft.replicas import ReplicaKey
from quire.seams import Clock, Disk, Jobs, Random, Timer
from quire.storage.turns import Turns

logger = logging.getLogger("quire.controller")

R = TypeVar("R")

_TURN_MS = 5.0
_TURN_PORTIONS = 1_000
"""How long a request with many parts keeps others waiting, and how many of these it does at most meanwhile."""


class Controller:
    """Owns the node's metadata: the log, the loader of what is committed, and while it leads the picture ahead of it.

    Subscribe to `loader`, then `open`. The log reports to this object as its `LogListener`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        cluster_id: str,
        directory_id: bytes,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        jobs: Jobs,
        failed: Callable[[Exception], None],
    ) -> None:
        """`directory_id` is that of the metadata log's directory. `failed` is called once, when metadata is lost."""
        self.loader = MetadataLoader()
        self.log = MetadataLog(
            config.metadata_log_dir,
            ReplicaKey(config.node_id, directory_id),
            self,
            clock=clock,
            random=random,
            disk=disk,
            jobs=jobs,
            failed=failed,
            settings=log_settings(config),
            static_voters=static_voters(config),
        )
        self._config = config
        self._cluster_id = cluster_id
        self._clock = clock
        self._random = random
        self._disk = disk
        self._bootstrap: Sequence[Message] = ()
        self._ahead: ClusterImage | None = None
        self._queue = WriteQueue()
        self._turns = Turns(clock, per_turn=1)
        """Of requests with many parts: all of them together get one in each round of the event loop."""
        self._heartbeats = Heartbeats(config.get_int("broker.session.timeout.ms"))
        self._session_timer: Timer | None = None
        self._idle_timer: Timer | None = None
        self._when_active: list[Callable[[], None]] = []

    def open(self) -> None:
        """Blocks while files are read; MetadataLogError if they cannot be used. Becoming active comes later."""
        self._bootstrap = read_bootstrap(self._disk, self._config.metadata_log_dir)
        self.log.open()

    def close(self) -> None:
        """Answers whoever still waits and closes the log."""
        self._resign()
        self.log.close()

    @property
    def image(self) -> ClusterImage:
        """The cluster as committed."""
        return self.loader.image

    @property
    def is_active(self) -> bool:
        return self._ahead is not None

    def when_active(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when this node has become the active controller, now if it is."""
        if self.is_active:
            callback()
        else:
            self._when_active.append(callback)

    # --- requests; `now_ms` is the wall clock, for the timestamps of records

    def create_topics(self, request: CreateTopicsRequest, now_ms: int) -> Pending[CreateTopicsResponse]:
        return self._run_in_turns(
            lambda image: create_topics.create_topics(image, self._config, self._random, request),
            lambda error: refusals.for_create_topics(request, error),
            now_ms,
        )

    def delete_topics(self, request: DeleteTopicsRequest, now_ms: int) -> Pending[DeleteTopicsResponse]:
        return self._run_in_turns(
            lambda image: delete_topics.delete_topics(image, self._config, request),
            lambda error: refusals.for_delete_topics(request, error),
            now_ms,
        )

    def create_partitions(self, request: CreatePartitionsRequest, now_ms: int) -> Pending[CreatePartitionsResponse]:
        return self._run_in_turns(
            lambda image: create_partitions.create_partitions(image, self._random, request),
            lambda error: refusals.for_create_partitions(request, error),
            now_ms,
        )

    def alter_configs(self, request: AlterConfigsRequest, now_ms: int) -> Pending[AlterConfigsResponse]:
        return self._run_in_turns(
            lambda image: configs.alter_configs(image, self._config, request),
            lambda error: refusals.for_alter_configs(request, error),
            now_ms,
        )

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, now_ms: int
    ) -> Pending[IncrementalAlterConfigsResponse]:
        return self._run_in_turns(
            lambda image: configs.incremental_alter_configs(image, self._config, request),
            lambda error: refusals.for_incremental_alter_configs(request, error),
            now_ms,
        )

    def update_features(self, request: UpdateFeaturesRequest, now_ms: int) -> Pending[UpdateFeaturesResponse]:
        return self._run(
            lambda image: features.update_features(image, self._config, self.log.kraft_version, request),
            lambda error: UpdateFeaturesResponse(error_code=error.code, error_message=error.message),
            now_ms,
        )

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, now_ms: int
    ) -> Pending[AllocateProducerIdsResponse]:
        return self._run(
            lambda image: producer_ids.allocate_producer_ids(image, request),
            lambda error: AllocateProducerIdsResponse(error_code=error.code),
            now_ms,
        )

    def register_broker(self, request: BrokerRegistrationRequest, now_ms: int) -> Pending[BrokerRegistrationResponse]:
        return self._run(
            lambda image: self._register_broker(image, request),
            lambda error: BrokerRegistrationResponse(error_code=error.code),
            now_ms,
        )

    def register_controller(
        self, request: ControllerRegistrationRequest, now_ms: int
    ) -> Pending[ControllerRegistrationResponse]:
        return self._run(
            lambda image: brokers.register_controller(image, request),
            lambda error: ControllerRegistrationResponse(error_code=error.code),
            now_ms,
        )

    def unregister_broker(self, request: UnregisterBrokerRequest, now_ms: int) -> Pending[UnregisterBrokerResponse]:
        return self._run(
            lambda image: self._unregister_broker(image, request),
            lambda error: UnregisterBrokerResponse(error_code=error.code),
            now_ms,
        )

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> Pending[BrokerHeartbeatResponse]:
        return self._run(
            lambda image: self._heartbeat(image, request),
            lambda error: BrokerHeartbeatResponse(error_code=error.code),
            now_ms,
        )

    def describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        return quorum.describe_quorum(self.log, self._clock, request)

    # --- running them

    def _run(
        self, manage: Callable[[ClusterImage], Result[R]], refused: Callable[[ApiError], R], now_ms: int
    ) -> Pending[R]:
        if self._ahead is None:
            return completed(refused(refusals.not_controller()))
        return self._finish(manage(self._ahead), refused, now_ms)

    def _finish(self, result: Result[R], refused: Callable[[ApiError], R], now_ms: int) -> Pending[R]:
        if result.records:
            if self.log.waits_for_room:
                return completed(refused(refusals.no_room()))
            self._write(result.records, now_ms)
        return self._queue.answer(result.response, self.log.next_offset, lambda: refused(refusals.not_controller()))

    def _run_in_turns(
        self, manage: Callable[[ClusterImage], Portions[R]], refused: Callable[[ApiError], R], now_ms: int
    ) -> Pending[R]:
        """Writes what was come to by then, and lets others have their turn, whenever it takes long."""
        ahead = self._ahead
        if ahead is None:
            return completed(refused(refusals.not_controller()))
        answer: Pending[R] = Pending()
        portions = manage(ahead)
        if len(self._turns):
            self._turns.add(lambda: self._take_turns(portions, ahead, answer, refused, now_ms))
        else:
            self._take_turns(portions, ahead, answer, refused, now_ms)
        return answer

    def _take_turns(
        self,
        portions: Portions[R],
        ahead: ClusterImage,
        answer: Pending[R],
        refused: Callable[[ApiError], R],
        now_ms: int,
        *,
        has_written: bool = False,
    ) -> None:
        if self._ahead is not ahead:
            answer.complete(refused(refusals.not_controller()))
            return
        try:
            records, response = self._take_turn(portions)
            self._write(records, now_ms)
        except Exception:
            logger.exception("a request failed unexpectedly")
            failure = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed on this request")
            answer.complete(refused(failure))
            return
        has_written = has_written or bool(records)
        if response is None:
            self._turns.add(lambda: self._take_turns(portions, ahead, answer, refused, now_ms, has_written=has_written))
        elif self.log.waits_for_room and not has_written:
            answer.complete(response)  # All of it was refused, or changes nothing; the rest may take very long.
        else:
            self._finish(Result(response), refused, now_ms).when_done(answer.complete)

    def _take_turn(self, portions: Portions[R]) -> tuple[list[Message], R | None]:
        """The records of some portions, and the response if these were all."""
        until_ms = self._clock.monotonic_ms() + _TURN_MS
        portions_left = _TURN_PORTIONS
        records: list[Message] = []
        refusal: ApiError | None = None
        try:
            while refusal is not None or (portions_left and self._clock.monotonic_ms() < until_ms):
                portion = next(portions) if refusal is None else portions.throw(refusal)
                refusal = refusals.no_room() if portion and self.log.waits_for_room else None
                if refusal is None:
                    records += portion
                    portions_left -= 1
        except StopIteration as end:
            return records, end.value
        return records, None

    def _write(self, records: Sequence[Message], now_ms: int) -> None:
        """Records go into the log and, at once, into the picture that runs ahead."""
        if not records:
            return
        assert self._ahead is not None
        level = self._ahead.metadata_version
        self.log.append([(record, record_version(record, level)) for record in records], now_ms)
        delta = ImageDelta()
        for record in records:
            replay(self._ahead, record, delta)

    def _register_broker(
        self, image: ClusterImage, request: BrokerRegistrationRequest
    ) -> Result[BrokerRegistrationResponse]:
        existing = image.brokers.get(request.broker_id)
        now_ms = self._clock.monotonic_ms()
        # An earlier incarnation of this very node is gone: its data directory is locked by us.
        is_own = request.broker_id == self._config.node_id
        is_gone = existing is None or not self._heartbeats.is_alive(existing.broker_id, existing.epoch, now_ms)
        result = brokers.register_broker(
            image,
            self._config,
            self._cluster_id,
            request,
            next_offset=self.log.next_offset,
            may_replace=is_own or is_gone,
        )
        if result.response.error_code == ErrorCode.NONE:
            self._heartbeats.heard(request.broker_id, result.response.broker_epoch, now_ms)
            self._watch_sessions()
        return result

    def _unregister_broker(
        self, image: ClusterImage, request: UnregisterBrokerRequest
    ) -> Result[UnregisterBrokerResponse]:
        self._heartbeats.forget(request.broker_id)
        return brokers.unregister_broker(image, self._config, request)

    def _heartbeat(self, image: ClusterImage, request: BrokerHeartbeatRequest) -> Result[BrokerHeartbeatResponse]:
        return brokers.heartbeat(
            image,
            self._config,
            self._heartbeats,
            request,
            now_ms=self._clock.monotonic_ms(),
            next_offset=self.log.next_offset,
        )

    # --- what the log tells

    def snapshot_loaded(self, records: Sequence[Message], last_offset: int, epoch: int, timestamp_ms: int) -> None:
        try:
            self.loader.load_snapshot(records, last_offset, epoch, timestamp_ms)
        except UnsupportedMetadataError as error:
            raise MetadataLogError(str(error)) from error

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """The node acts on a change before whoever asked for it hears that it is done."""
        try:
            self.loader.apply(batches)
        except UnsupportedMetadataError as error:
            raise MetadataLogError(str(error)) from error
        self._queue.committed(self.loader.image.offset + 1)

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        if leader_id == self._config.node_id:
            self._activate(epoch)
        else:
            self._resign()

    def snapshot_content(self) -> SnapshotContent | None:
        if self.loader.in_transaction:
            return None
        image = self.loader.image.copy()
        return SnapshotContent(image.offset, image.epoch, image.timestamp_ms, _versioned(image))

    # --- leading

    def _activate(self, epoch: int) -> None:
        logger.info("controller active epoch=%d offset=%d", epoch, self.loader.image.offset)
        self._ahead = self.loader.image.copy()
        now_ms = self._clock.monotonic_ms()
        for broker in self._ahead.brokers_sorted():
            if not broker.fenced:
                self._heartbeats.heard(broker.broker_id, broker.epoch, now_ms)
        first = activation_records(
            self._ahead, self._config, self._bootstrap, in_transaction=self.loader.in_transaction
        )
        if first:
            self._write(first, self._clock.now_ms())
        self._watch_sessions()
        if self.log.has_followers:
            self._tick_while_idle()
        waiting, self._when_active = self._when_active, []
        for callback in waiting:
            callback()

    def _resign(self) -> None:
        if self._ahead is not None:
            logger.info("controller resigned")
        self._ahead = None
        self._heartbeats.clear()
        for timer in (self._session_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._session_timer = self._idle_timer = None
        self._queue.refuse_all()

    def _watch_sessions(self) -> None:
        """Comes back when the first session would end if nothing more is heard."""
        if self._session_timer is not None:
            self._session_timer.cancel()
            self._session_timer = None
        expiry_ms = self._heartbeats.next_expiry_ms
        if expiry_ms < inf and self._ahead is not None:
            delay_ms = expiry_ms - self._clock.monotonic_ms()
            # Not a moment too early, whatever the clock rounds: it would find no one silent and come back at once.
            self._session_timer = self._clock.call_later(max(delay_ms, 0) + 1, self._fence_the_silent)

    def _fence_the_silent(self) -> None:
        assert self._ahead is not None
        now_ms = self._clock.monotonic_ms()
        for broker_id in self._heartbeats.silent(now_ms):
            self._heartbeats.forget(broker_id)
            broker = self._ahead.brokers.get(broker_id)
            if broker is not None and broker_id == self._config.node_id:
                # The broker in this process is not gone while its controller runs: both were held up together.
                self._heartbeats.heard(broker_id, broker.epoch, now_ms)
            elif broker is not None and not broker.fenced:
                logger.warning("broker fenced broker=%d reason=no heartbeat within the session timeout", broker_id)
                self._write(brokers.fence(self._ahead, self._config, broker_id), self._clock.now_ms())
        self._watch_sessions()

    def _tick_while_idle(self) -> None:
        """Followers of a log that does not move cannot tell a quiet leader from one they lost: it keeps moving.

        A quorum of one without observers has nobody to tell, and an idle node writes nothing.
        """
        interval_ms = self._config.get_int("metadata.max.idle.interval.ms")
        if interval_ms <= 0 or self._ahead is None:
            return
        before = self.log.next_offset

        def tick() -> None:
            if self._ahead is not None and self.log.next_offset == before and not self.log.waits_for_room:
                self._write([NoOpRecord()], self._clock.now_ms())
            self._tick_while_idle()

        self._idle_timer = self._clock.call_later(interval_ms, tick)


def _versioned(image: ClusterImage) -> Iterable[tuple[Message, int]]:
    level = image.metadata_version
    return ((record, record_version(record, level)) for record in records_of(image))
