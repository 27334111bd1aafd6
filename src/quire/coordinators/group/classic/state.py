"""The states of a classic group, what may follow what, and what each says to a heartbeat."""

from enum import Enum

from quire.protocol.errors import ErrorCode


class ClassicState(Enum):
    """Values as Kafka spells them in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    """No members; it stays for its offsets, and for whoever joins next."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup requests wait for the others."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """A new generation; SyncGroup requests wait for the leader's, and for its record to be committed."""

    STABLE = "Stable"
    """Every member may know its assignment."""

    DEAD = "Dead"
    """Gone; only those who still hold a reference see this."""


TRANSITIONS: dict[ClassicState, tuple[ClassicState, ...]] = {
    ClassicState.EMPTY: (ClassicState.PREPARING_REBALANCE, ClassicState.DEAD),
    ClassicState.PREPARING_REBALANCE: (
        ClassicState.COMPLETING_REBALANCE,
        ClassicState.EMPTY,
        ClassicState.DEAD,
    ),
    ClassicState.COMPLETING_REBALANCE: (
        ClassicState.STABLE,
        ClassicState.PREPARING_REBALANCE,
        ClassicState.DEAD,
    ),
    ClassicState.STABLE: (ClassicState.PREPARING_REBALANCE, ClassicState.DEAD),
    ClassicState.DEAD: (),
}

HEARTBEAT_ANSWERS: dict[ClassicState, ErrorCode] = {
    ClassicState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    ClassicState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    # A member beats from the moment it has joined, and would rejoin for nothing if it were told of this rebalance.
    ClassicState.COMPLETING_REBALANCE: ErrorCode.NONE,
    ClassicState.STABLE: ErrorCode.NONE,
    ClassicState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""To a member of the current generation."""
