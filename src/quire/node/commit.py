"""Waits until records are committed, for transaction markers and coordinators. Produce has its own version."""

from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.commit_wait import CommitWait
from quire.replication.leader_role import LeaderRole
from quire.seams import Clock


def when_committed(
    leader: LeaderRole, end_offset: int, clock: Clock, timeout_ms: int | None
) -> Pending[ApiError | None]:
    """Completes when the high watermark reaches `end_offset`, as for acks=all, or with an ApiError if it may not.

    Without a timeout it waits for as long as the leadership lasts.
    """
    if leader.may_acknowledge(end_offset - 1, True):
        return completed(None)
    wait = CommitWait()
    wait.wait_for(leader, end_offset, acks_all=True)
    wait.start(clock, timeout_ms)

    def error_of(failed: dict[LeaderRole, ErrorCode]) -> ApiError | None:
        code = failed.get(leader)
        return None if code is None else ApiError(code, f"{leader.partition} could not commit what was appended")

    return wait.then(error_of)
