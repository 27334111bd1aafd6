"""The states of a transaction, their numbers in the log, their names in responses, and the transitions."""

from enum import IntEnum


class TransactionState(IntEnum):
    __hash__ = int.__hash__  # Enum's own is a slow Python function, and states are hashed for every request.

    EMPTY = 0
    """The producer has an id and epoch, and no transaction yet."""
    ONGOING = 1
    PREPARE_COMMIT = 2
    """Decided. The markers are being written, and only their completion can change the state."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker. The producer may begin its next transaction."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """Expired: the tombstone is written. Never in the log."""
    PREPARE_EPOCH_FENCE = 7
    """To be aborted as soon as there is a new producer id. Never in the log: after a reload the state is ONGOING."""


NAMES: dict[TransactionState, str] = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions spell them."""

STATES_BY_NAME: dict[str, TransactionState] = {name: state for state, name in NAMES.items()}

AT_REST = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""Between two transactions."""

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""Waiting for markers."""

ENDING = PREPARED | {TransactionState.PREPARE_EPOCH_FENCE}
"""Every request must wait."""

MAY_FOLLOW: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: AT_REST,
    TransactionState.ONGOING: AT_REST | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    # A producer of protocol 2 may abort a transaction that has not begun, to get the next epoch.
    TransactionState.PREPARE_ABORT: AT_REST | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE}),
}
"""The states that each state may follow."""

COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

IN_THE_LOG: dict[int, TransactionState] = {
    int(state): state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
}
