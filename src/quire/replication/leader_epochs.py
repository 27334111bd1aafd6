"""Whether a client and this leader speak of the same leadership.

Clients that track leader epochs send the one they know. An older one means they follow a deposed leader and must
refresh their metadata; a newer one means this broker has not heard yet and the client should come back.
"""

from quire.protocol.errors import ErrorCode

NO_EPOCH = -1
"""What clients send that do not track leader epochs."""


def check_leader_epoch(current: int, requested: int) -> ErrorCode:
    if requested in (NO_EPOCH, current):
        return ErrorCode.NONE
    if requested < current:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
