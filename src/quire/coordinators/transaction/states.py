"""The states of a transaction, their numbers in the log and names in answers, and which may follow which."""

from enum import IntEnum


class State(IntEnum):
    __hash__ = int.__hash__  # An enumeration's own is a Python function, and states are looked up all the time.

    EMPTY = 0
    """A producer has its id and epoch, and no transaction yet."""
    ONGOING = 1
    PREPARE_COMMIT = 2
    """Decided. Markers are on their way, and only they can move it on."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker; the producer may begin its next transaction."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """Expired, its tombstone is written. Never in the log."""
    PREPARE_EPOCH_FENCE = 7
    """To be aborted as soon as there is a producer id to go on with. Never in the log: after a reload it is ongoing."""


NAMES: dict[State, str] = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions spell them."""

STATES_BY_NAME: dict[str, State] = {name: state for state, name in NAMES.items()}

AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""Between two transactions."""

PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
"""Waiting for markers."""

ENDING = PREPARED | {State.PREPARE_EPOCH_FENCE}
"""Nobody may do anything but wait."""

MAY_FOLLOW: dict[State, frozenset[State]] = {
    State.EMPTY: AT_REST,
    State.ONGOING: AT_REST | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # At rest, a producer of transaction protocol 2 may abort what has not begun, to be given the next epoch.
    State.PREPARE_ABORT: AT_REST | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: AT_REST,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING, State.PREPARE_EPOCH_FENCE}),
}
"""The states that each state may follow."""

COMPLETE = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}

IN_THE_LOG: dict[int, State] = {
    int(state): state for state in State if state not in (State.DEAD, State.PREPARE_EPOCH_FENCE)
}
