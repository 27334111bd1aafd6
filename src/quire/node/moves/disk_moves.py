"""`DiskMoves`: the moves of replicas between the data directories of this broker.

A request answers when the future log exists; the node then copies, a few replicas at a time, and a restart goes on. A
second request for a replica replaces the first one, and a request for the directory where it is cancels it.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from quire.metadata.features import has_directories
from quire.node.moves.copying import PORTION_BYTES, Copying
from quire.node.moves.disk_move import DiskMove
from quire.node.moves.move_state import MoveState
from quire.node.partitions.hosted import PartitionId
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.replication.partition import Partition
from quire.storage.cleaning.cleaner import Cleaner
from quire.storage.cleaning.throttle import Throttle
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.few_jobs import FewJobs
from quire.storage.log import Log

if TYPE_CHECKING:
    from quire.metadata.delta import ImageDelta
    from quire.metadata.image import ClusterImage
    from quire.node.node import Node
    from quire.node.partitions import Partitions

log = logging.getLogger("quire.disks")

READING_JOBS = 2
"""There are only a few threads, and requests wait for flushes."""

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
THREADS = "num.replica.alter.log.dirs.threads"


class DiskMoves:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self.clock = node.clock
        self.jobs = FewJobs(node.jobs, READING_JOBS)
        self._throttle = Throttle(node.clock)
        self._moves: dict[PartitionId, DiskMove] = {}
        self._next: dict[PartitionId, LogDirectory] = {}
        """Where replicas move afterwards, whose present move cannot be cancelled at once."""
        self._restarts: dict[TopicPartition, LogDirectory] = {}
        """Moves of the last run whose copy could not be used."""
        self._orphans: set[TopicPartition] = set()
        """Future logs without an original, which may be all that is left of a partition."""
        self.is_stopped = False

    def __iter__(self) -> Iterator[DiskMove]:
        return iter(list(self._moves.values()))

    # --- Requests

    def request(self, topic: str, index: int, path: str) -> None:
        """Begins to move the replica to the directory `path`, or remembers it for a replica that does not exist yet.

        ApiError if that is not possible, and REPLICA_NOT_AVAILABLE if it is remembered.
        """
        if topic == CLUSTER_METADATA:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the metadata log stays in metadata.log.dir")
        directories = self._node.partitions.directories()
        target = next((each for each in directories if _same_path(each.path, path)), None)
        if target is None:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        if target.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is offline: {target.failure}")
        partition = self._node.partitions.opened(topic, None, index)
        if partition is None:
            found = self._node.image.topic(topic)
            if found is not None and self._node.partitions.is_offline(found.topic_id, index):
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {topic}-{index} is offline")
            self._node.partitions.wish(topic, index, target)
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, f"this broker has no log of {topic}-{index} yet")
        self._move(partition, target)

    def _move(self, partition: Partition, target: LogDirectory) -> None:
        key = (partition.topic_id, partition.index)
        present = self._moves.get(key)
        self._next.pop(key, None)
        if present is not None:
            if present.target is target and present.partition is partition and not present.is_dropped:
                return
            self._next[key] = target
            present.cancel()  # If it has ended by that, the next one has begun.
        else:
            self._begin(partition, target)

    def _begin(self, partition: Partition, target: LogDirectory) -> None:
        source = self._node.partitions.directory_of(partition)
        if source is not target:
            key = (partition.topic, partition.index)
            if key not in target.futures:
                target.begin_future(key, partition.log.config, partition.topic_id)
            self._add(DiskMove(self, partition, source, target))

    def _add(self, move: DiskMove) -> None:
        self._moves[move.partition.topic_id, move.partition.index] = move
        move.try_to_lend()
        self._start_waiting()

    # --- A start

    def logs_loaded(self, restarts: Mapping[TopicPartition, LogDirectory]) -> None:
        """Before the partitions are opened. `restarts` are moves whose copies were not complete, with their targets."""
        self._restarts = dict(restarts)
        directories = self._node.partitions.directories()
        if any(each.failure is not None or each.is_new for each in directories):
            return  # The originals may be there.
        found = {key for each in directories for key in (*each.logs, *each.unopened)}
        self._orphans = {key for each in directories for key in each.futures if key not in found}

    def resume(self) -> None:
        """The partitions follow the image: goes on with the moves of the last run."""
        for target in self._node.partitions.directories():
            for key, copy in list(target.futures.items()):
                try:
                    self._resume(target, key, copy)
                except ApiError as error:
                    log.error("the move of %s-%d to %s does not go on: %s", *key, target.path, error.message)
        for key, target in self._restarts.items():
            partition = self._node.partitions.opened(key[0], None, key[1])
            if partition is not None and target.failure is None:
                try:
                    self._move(partition, target)
                except ApiError as error:
                    log.error("the move of %s-%d to %s does not go on: %s", *key, target.path, error.message)
        self._restarts = {}

    def _resume(self, target: LogDirectory, key: TopicPartition, copy: Log) -> None:
        topic = self._node.image.topic(key[0])
        is_replica = (
            topic is not None
            and key[1] in topic.partitions
            and (self._node.node_id in topic.partitions[key[1]].replicas)
        )
        topic_id = target.future_ids[key]
        if topic is None or not is_replica or topic_id not in (None, topic.topic_id):
            target.drop_future(key)
            return
        if key in self._orphans:
            folder = target.keep_future(key)
            log.warning(
                "the log of %s-%d is gone; the copy that was begun is kept in %s until you remove it", *key, folder
            )
            return
        partition = self._node.partitions.opened(key[0], None, key[1])
        if partition is None:
            # The original is in a directory that has failed, or could not be opened.
            return
        source = self._node.partitions.directory_of(partition)
        is_moving = (partition.topic_id, partition.index) in self._moves
        if source is target or is_moving:
            target.drop_future(key)
        elif topic_id is None:
            # A power loss took the id of the topic, and so maybe what else the folder had.
            target.drop_future(key)
            self._begin(partition, target)
        else:
            log.info("move goes on partition=%s to=%s at=%d", partition, target.path, copy.end_offset)
            self._add(DiskMove(self, partition, source, target))

    # --- Events and questions

    def futures(self, directory: LogDirectory) -> list[tuple[TopicPartition, int, int]]:
        """For each replica that moves to this directory: its name, how many offsets are left, and its size there."""
        moves = [each for each in self._moves.values() if each.target is directory and each.key in directory.futures]
        return [(each.key, each.lag, each.copy.size_bytes) for each in moves]

    def image_changed(self, image: "ClusterImage", delta: "ImageDelta") -> None:
        """The partitions of this node follow the image already."""
        if not self._moves:
            return
        changed = [(topic_id, index) for topic_id, indexes in delta.partitions.items() for index in indexes]
        changed += [(each.topic_id, index) for each in delta.removed_topics.values() for index in each.partitions]
        for key in changed:
            move = self._moves.get(key)
            if move is not None:
                if not self._node.partitions.has(move.partition):
                    self._next.pop(key, None)
                    move.partition_removed()
                else:
                    move.committed()

    def damage_found(self, partition: Partition) -> None:
        """A repair of its log begins."""
        move = self._moves.get((partition.topic_id, partition.index))
        if move is not None:
            move.make_way_for_repair()

    def directory_failed(self, directory: LogDirectory) -> None:
        for move in list(self._moves.values()):
            if directory in (move.source, move.target):
                self._next.pop((move.partition.topic_id, move.partition.index), None)
                move.directory_failed()

    def stop(self) -> None:
        """Copies nothing more. The next start goes on."""
        self.is_stopped = True

    # --- For `Copying` and `DiskMove`

    @property
    def cleaner(self) -> Cleaner:
        return self._node.cleaner

    @property
    def partitions(self) -> "Partitions":
        return self._node.partitions

    def may_work(self, move: Copying) -> bool:
        is_here = not self.is_stopped and self._node.partitions.has(move.partition)
        return is_here and move.source.failure is None and move.target.failure is None

    def portion_bytes(self) -> int:
        rate = self._node.config.get_int(RATE)
        return max(min(PORTION_BYTES, rate // 4), 1)

    def throttled_ms(self, size_bytes: int, begun_ms: float) -> float:
        return self._throttle.delay_ms(size_bytes, self._node.config.get_int(RATE), begun_ms)

    def announce(self, move: DiskMove) -> None:
        """Has the controller told where the replica will be."""
        meta = move.target.meta
        if meta is not None and self._knows_directories:
            self._node.partitions.announced[move.partition.topic_id, move.partition.index] = meta.directory_id
            self._reconsider(move)

    def is_committed(self, move: DiskMove) -> bool:
        """Whether the image has the new directory, or no directories at all."""
        if not self._knows_directories:
            return True
        image = self._node.image.partition(move.partition.topic_id, move.partition.index)
        if image is None or self._node.node_id not in image.replicas or move.target.meta is None:
            return False
        return image.directories[image.replicas.index(self._node.node_id)] == move.target.meta.directory_id

    @property
    def _knows_directories(self) -> bool:
        return has_directories(self._node.image.metadata_version)

    def _reconsider(self, move: DiskMove) -> None:
        if self._node.directory_assignments is not None:
            self._node.directory_assignments.reconsider((move.partition.topic_id, move.partition.index))

    def has_moved(self, move: DiskMove, copy: Log) -> None:
        """In one turn of the event loop: every write goes to the original before, and to the copy afterwards."""
        self._node.partitions.announced.pop((move.partition.topic_id, move.partition.index), None)
        self._node.partitions.has_moved(move.partition, move.target, copy)

    def target_failed(self, move: Copying, error: Exception) -> ApiError:
        move.target.fail(error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {move.target.path} fails: {error}")

    def source_failed(self, move: DiskMove, error: Exception) -> None:
        move.source.fail(error)

    def ended(self, move: DiskMove) -> None:
        key = (move.partition.topic_id, move.partition.index)
        self._moves.pop(key, None)
        if self._node.partitions.announced.pop(key, None) is not None:
            self._reconsider(move)
        following = self._next.pop(key, None)
        partition = self._node.partitions.opened(move.partition.topic, move.partition.topic_id, move.partition.index)
        if following is not None and following.failure is None and partition is not None and not self.is_stopped:
            try:
                self._begin(partition, following)
            except ApiError as error:
                log.error("%s does not move to %s: %s", partition, following.path, error.message)
        self._start_waiting()

    # --- How many at a time

    def _start_waiting(self) -> None:
        threads = self._node.config.get(THREADS)
        at_once = threads if isinstance(threads, int) else len(self._node.partitions.directories())
        running = sum(move.state is not MoveState.WAITING for move in self._moves.values())
        for move in list(self._moves.values()):
            if running >= at_once or self.is_stopped:
                break
            if move.state is MoveState.WAITING:
                running += 1
                move.begin()


def _same_path(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")
