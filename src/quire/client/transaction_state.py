"""The states of a transactional producer, as a table: the events that each state allows, and the next state.

    UNINITIALIZED --initialized--> READY --begin--> OPEN --commit--> COMMITTING --ended--> READY
                                                     |                   |
                                                     +-----abort---------|------> ABORTING --ended--> READY
                                                     +-----failed------> BROKEN --abort--^

A failure leaves the transaction BROKEN: only an abort is possible then. A producer that was fenced, or that the
coordinator refuses, is DEAD, and the application needs a new one. COMMITTING and ABORTING last until the coordinator
has confirmed the end; after a time-out the caller may repeat the same call, and no other.
"""

from enum import Enum, auto

from quire.client.errors import ClientError


class TransactionState(Enum):
    UNINITIALIZED = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()
    BROKEN = auto()
    DEAD = auto()


class TransactionEvent(Enum):
    INITIALIZED = auto()
    BEGIN = auto()
    COMMIT = auto()
    ABORT = auto()
    ENDED = auto()
    FAILED = auto()  # this transaction cannot be committed
    FENCED = auto()  # this producer cannot continue


TRANSITIONS: dict[TransactionState, dict[TransactionEvent, TransactionState]] = {
    TransactionState.UNINITIALIZED: {
        TransactionEvent.INITIALIZED: TransactionState.READY,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.READY: {
        TransactionEvent.INITIALIZED: TransactionState.READY,
        TransactionEvent.BEGIN: TransactionState.OPEN,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.OPEN: {
        TransactionEvent.COMMIT: TransactionState.COMMITTING,
        TransactionEvent.ABORT: TransactionState.ABORTING,
        TransactionEvent.FAILED: TransactionState.BROKEN,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.COMMITTING: {
        TransactionEvent.COMMIT: TransactionState.COMMITTING,
        TransactionEvent.ENDED: TransactionState.READY,
        TransactionEvent.FAILED: TransactionState.BROKEN,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.BROKEN: {
        TransactionEvent.ABORT: TransactionState.ABORTING,
        TransactionEvent.FAILED: TransactionState.BROKEN,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.ABORTING: {
        TransactionEvent.ABORT: TransactionState.ABORTING,
        TransactionEvent.ENDED: TransactionState.READY,
        TransactionEvent.FAILED: TransactionState.ABORTING,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
    TransactionState.DEAD: {
        TransactionEvent.FAILED: TransactionState.DEAD,
        TransactionEvent.FENCED: TransactionState.DEAD,
    },
}

# What the caller must do first, for each state that forbids what the caller asked for.
_ADVICE = {
    TransactionState.UNINITIALIZED: "call init_transactions first",
    TransactionState.READY: "no transaction is open; begin one first",
    TransactionState.OPEN: "a transaction is open; commit or abort it first",
    TransactionState.COMMITTING: "the transaction is being committed; call commit again until it succeeds",
    TransactionState.ABORTING: "the transaction is being aborted; call abort again until it succeeds",
}


class TransactionStateMachine:
    """The current state, and the error that broke the transaction or the producer."""

    __slots__ = ("error", "now")

    def __init__(self) -> None:
        self.now = TransactionState.UNINITIALIZED
        self.error: Exception | None = None

    def check(self, event: TransactionEvent) -> None:
        """Raises an error if the state does not allow the event; in a broken or dead state, the original error."""
        if event in TRANSITIONS[self.now]:
            return
        if self.error is not None:
            raise self.error
        raise ClientError(f"{event.name.lower()} is not possible now: {_ADVICE[self.now]}")

    def apply(self, event: TransactionEvent, error: Exception | None = None) -> None:
        self.check(event)
        before, self.now = self.now, TRANSITIONS[self.now][event]
        if self.now is TransactionState.READY:
            self.error = None
        elif error is not None and (self.error is None or self.now is not before):
            self.error = error

    @property
    def takes_records(self) -> bool:
        """Whether the caller may add records."""
        return self.now is TransactionState.OPEN

    @property
    def sends_records(self) -> bool:
        """Whether records that were added are sent to the brokers, and sent again if necessary."""
        return self.now in (TransactionState.OPEN, TransactionState.COMMITTING)
