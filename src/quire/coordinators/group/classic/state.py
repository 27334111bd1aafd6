"""The states of a classic group, the transitions between them, and the error that a heartbeat gets in each."""

from enum import Enum

from quire.protocol.errors import ErrorCode


class ClassicState(Enum):
    """Values as Kafka spells them in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    """No members. The group keeps its offsets."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """The join phase: JoinGroup requests wait for the other members."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The sync phase: SyncGroup requests wait until the leader's assignment is committed."""

    STABLE = "Stable"
    """The assignment is committed, and members can get it."""

    DEAD = "Dead"
    """Deleted. Only code that still has a reference sees this state."""


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

HEARTBEAT_ERRORS: dict[ClassicState, ErrorCode] = {
    ClassicState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    ClassicState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    # Members send heartbeats as soon as they have joined. With REBALANCE_IN_PROGRESS they would rejoin needlessly.
    ClassicState.COMPLETING_REBALANCE: ErrorCode.NONE,
    ClassicState.STABLE: ErrorCode.NONE,
    ClassicState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""For members of the current generation."""
