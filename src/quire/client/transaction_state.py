"""Where a transactional producer stands, as a table: what may happen in each state, and what comes of it.

    UNINITIALIZED --initialized--> READY --begin--> OPEN --commit--> COMMITTING --ended--> READY
                                                     |                   |
                                                     +-----abort---------|------> ABORTING --ended--> READY
                                                     +-----failed------> BROKEN --abort--^

What fails in a transaction leaves it BROKEN: nothing but an abort is possible then. A producer that was fenced, or that
the coordinator will not have, is DEAD, and a new one is needed. COMMITTING and ABORTING last until the coordinator has
said that it is so; whoever lost patience may ask for the same again, and for nothing else.
"""

from enum import Enum, auto

from quire.client.errors import ClientError


class State(Enum):
    UNINITIALIZED = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()
    BROKEN = auto()
    DEAD = auto()


class Event(Enum):
    INITIALIZED = auto()
    BEGIN = auto()
    COMMIT = auto()
    ABORT = auto()
    ENDED = auto()
    FAILED = auto()  # something of this transaction cannot be done
    FENCED = auto()  # nothing more can be done by this producer


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNINITIALIZED: {
        Event.INITIALIZED: State.READY,
        Event.FENCED: State.DEAD,
    },
    State.READY: {
        Event.INITIALIZED: State.READY,
        Event.BEGIN: State.OPEN,
        Event.FENCED: State.DEAD,
    },
    State.OPEN: {
        Event.COMMIT: State.COMMITTING,
        Event.ABORT: State.ABORTING,
        Event.FAILED: State.BROKEN,
        Event.FENCED: State.DEAD,
    },
    State.COMMITTING: {
        Event.COMMIT: State.COMMITTING,
        Event.ENDED: State.READY,
        Event.FAILED: State.BROKEN,
        Event.FENCED: State.DEAD,
    },
    State.BROKEN: {
        Event.ABORT: State.ABORTING,
        Event.FAILED: State.BROKEN,
        Event.FENCED: State.DEAD,
    },
    State.ABORTING: {
        Event.ABORT: State.ABORTING,
        Event.ENDED: State.READY,
        Event.FAILED: State.ABORTING,
        Event.FENCED: State.DEAD,
    },
    State.DEAD: {
        Event.FAILED: State.DEAD,
        Event.FENCED: State.DEAD,
    },
}

# What to tell who asks for something that the state does not allow.
_ADVICE = {
    State.UNINITIALIZED: "init_transactions comes first",
    State.READY: "no transaction is open; begin one first",
    State.OPEN: "a transaction is open; commit or abort it first",
    State.COMMITTING: "the transaction is being committed, and can only be committed again until that is certain",
    State.ABORTING: "the transaction is being aborted, and can only be aborted again until that is certain",
}


class TransactionState:
    """The state now, and why it is broken or dead."""

    __slots__ = ("error", "now")

    def __init__(self) -> None:
        self.now = State.UNINITIALIZED
        self.error: Exception | None = None

    def check(self, event: Event) -> None:
        """Raises why this cannot happen now; in a broken or dead state, what broke it."""
        if event in TRANSITIONS[self.now]:
            return
        if self.error is not None:
            raise self.error
        raise ClientError(f"{event.name.lower()} is not possible now: {_ADVICE[self.now]}")

    def apply(self, event: Event, error: Exception | None = None) -> None:
        self.check(event)
        before, self.now = self.now, TRANSITIONS[self.now][event]
        if self.now is State.READY:
            self.error = None
        elif error is not None and (self.error is None or self.now is not before):
            self.error = error

    @property
    def takes_records(self) -> bool:
        """Whether the caller may add records."""
        return self.now is State.OPEN

    @property
    def sends_records(self) -> bool:
        """Whether records that were added go to the brokers, and go again if that is needed."""
        return self.now in (State.OPEN, State.COMMITTING)
