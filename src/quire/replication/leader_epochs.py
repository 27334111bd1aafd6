"""Compares the leader epoch that a client knows with that of the partition.

Clients that track leader epochs send the one they know. If it is older, they follow a deposed leader and must refresh
their metadata. If it is newer, this broker has not applied that metadata yet, and the client should retry.
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
