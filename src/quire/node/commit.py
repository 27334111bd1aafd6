"""Waiting until what was appended to partitions is committed: for markers and coordinators, as produce does it."""

from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.partition import Partition
from quire.replication.waiting import CommitWait
from quire.seams import Clock


def when_committed(partition: Partition, end_offset: int, clock: Clock, timeout_ms: int) -> Pending[ApiError | None]:
    """Done when everything below `end_offset` is as safe as acks=all promises; an ApiError where it may not be."""
    if partition.may_acknowledge(end_offset - 1, True):
        return completed(None)
    wait = CommitWait()
    wait.wait_for(partition, end_offset, acks_all=True)
    wait.start(clock, timeout_ms)

    def judge(failed: dict[Partition, ErrorCode]) -> ApiError | None:
        code = failed.get(partition)
        return None if code is None else ApiError(code, f"{partition} could not commit what it has")

    return wait.then(judge)
