"""Why a replica refuses a request that only the leader of its epoch may answer."""

from quire.protocol.errors import ErrorCode


def not_leader(asked_epoch: int, own_epoch: int) -> ErrorCode:
    """For a replica that does not lead `asked_epoch`, the epoch of the request."""
    if asked_epoch < own_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if asked_epoch > own_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
