"""`StateLog` on a partition that this node leads: the log of a coordinator on the same node."""

from quire.coordinators.runtime.state_log import Bounds
from quire.node.commit import when_committed
from quire.node.partitions import Partitions
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.leader_role import LeaderRole
from quire.seams import Buffer, Clock, FileSlice, Jobs
from quire.storage.scanning.range_check import NotCheckedError

MOST_CHECKS = 3
"""How often a read waits for a job: for an index, and for the bytes. More if segments change meanwhile."""


class OwnStateLog:
    """Works only while the node leads the partition in the given leader epoch."""

    __slots__ = ("_clock", "_index", "_jobs", "_leader_epoch", "_partitions", "_read_bytes", "_timeout_ms", "_topic")

    def __init__(
        self,
        partitions: Partitions,
        topic: str,
        index: int,
        leader_epoch: int,
        clock: Clock,
        jobs: Jobs,
        *,
        read_bytes: int,
        timeout_ms: int,
    ) -> None:
        self._partitions = partitions
        self._topic = topic
        self._index = index
        self._leader_epoch = leader_epoch
        self._clock = clock
        self._jobs = jobs
        self._read_bytes = read_bytes
        self._timeout_ms = timeout_ms

    def bounds(self) -> Pending[Bounds | ApiError]:
        """The start and the end of the log, once everything before the end is committed.

        That takes as long as too few replicas are in sync. What is committed by then counts, even if they are too few.
        """
        bounds: Pending[Bounds | ApiError] = Pending()
        try:
            leader = self._leader()
        except ApiError as error:
            bounds.complete(error)
            return bounds
        found = Bounds(leader.log.start_offset, leader.log.end_offset)
        if found.start == found.end:
            bounds.complete(found)
            return bounds

        def ended(error: ApiError | None) -> None:
            if error is None or error.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                bounds.complete(found)
            else:
                bounds.complete(error)

        when_committed(leader, found.end, self._clock, None).when_done(ended)
        return bounds

    def append(self, batch: bytearray, expected_offset: int) -> Pending[ApiError | None]:
        try:
            leader = self._leader()
            appended = leader.append_own(batch, self._clock.now_ms(), expected_offset)
        except ApiError as error:
            return completed(error)
        return when_committed(leader, appended.last_offset + 1, self._clock, self._timeout_ms)

    def read(self, offset: int) -> Pending[Buffer | ApiError]:
        pending: Pending[Buffer | ApiError] = Pending()
        self._read(offset, pending, checks_left=MOST_CHECKS)
        return pending

    def _read(self, offset: int, pending: Pending[Buffer | ApiError], *, checks_left: int) -> None:
        try:
            part = self._leader().partition.read(
                offset, self._read_bytes, at_least_one_batch=True, committed_only=False
            )
        except NotCheckedError as error:
            if checks_left:
                self._partitions.check(
                    self._leader().partition,
                    error.check,
                    lambda: self._read(offset, pending, checks_left=checks_left - 1),
                )
            else:
                pending.complete(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._topic}-{self._index} is not checked"))
            return
        except ApiError as error:
            pending.complete(error)
            return
        if part is None:
            pending.complete(b"")
        else:
            self._read_slice(part, pending)

    def _read_slice(self, part: FileSlice, pending: Pending[Buffer | ApiError]) -> None:
        def failed(error: Exception) -> None:
            pending.complete(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._topic}-{self._index}: {error}"))

        self._jobs.submit(part.read, pending.complete, failed)

    def _leader(self) -> LeaderRole:
        leader = self._partitions.leader(self._topic, None, self._index)
        if leader.leader_epoch != self._leader_epoch:
            leader.partition.check_leader_epoch(self._leader_epoch)
        return leader
