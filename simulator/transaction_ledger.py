"""What transactional producers requested and what they were answered: sessions, transactions, and how these end.

A session is what InitProducerId returned: a producer id and an epoch. Several producers may share a transactional id;
each session fences the ones before. A transaction has the records and the offsets that its producer sent, and an end:

    open ──▶ an abort was requested, or nothing          must never be visible
         └─▶ a commit was requested ──▶ acknowledged     must be visible completely, once everything has ended
                                    ├─▶ refused          as if it had not been requested
                                    └─▶ unknown          all or nothing: the first evidence decides

Unless the coordinators' logs and the topics are flushed at every message (`durable`), a power loss may lose the end of
a transaction, or the transaction itself while some of its records remain. Then every transaction that began before is
`suspended` and no longer checked, and producers continue under new names.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulator.ticks import Ticks
from simulator.violation import Violation

if TYPE_CHECKING:
    from simulator.ledger import PartitionBook
    from simulator.offset_ledger import CommitAttempt

ATOMIC = "a transaction is committed as a whole or not at all"

Identity = tuple[int, int]
"""Producer id and epoch."""


@dataclass(slots=True, eq=False)
class TransactionBook:
    name: str
    session: "Session"
    began_tick: int
    values: "dict[PartitionBook, list[bytes]]" = field(default_factory=dict)
    """What was sent to each partition, in order."""
    commits: "list[CommitAttempt]" = field(default_factory=list)
    """Offsets that count if it is committed."""
    commit_asked: bool = False
    committed_tick: int | None = None
    """When a commit was acknowledged."""
    suspended: bool = False
    trace: bool | None = None
    """Whether a client has seen it committed (True) or aborted (False); None while there is no evidence."""
    trace_text: str = ""

    def __repr__(self) -> str:
        return self.name

    @property
    def is_committed(self) -> bool | None:
        """None while it is unknown."""
        if self.committed_tick is not None:
            return True
        return self.trace if self.commit_asked else False

    def seen(self, committed: bool, how: str) -> None:
        """A client has seen its end, or something that is visible only after it."""
        if self.suspended:
            return
        expected = self.is_committed
        if expected is not None and expected is not committed:
            asked = self.trace_text or ("that was acknowledged" if committed is False else "no commit was requested")
            word = "committed" if committed else "aborted"
            raise Violation(ATOMIC, f"{self} is {word} ({how}), but {asked}")
        if self.trace is None:
            self.trace, self.trace_text = committed, how


@dataclass(slots=True, eq=False)
class Init:
    """One InitProducerId."""

    asked_tick: int
    settled_tick: int | None = None
    """When its outcome was known. Until then it may be executed at any time, and fence the current producer."""


@dataclass(slots=True, eq=False)
class Session:
    """A producer's identity, from one InitProducerId to the next."""

    owner: "TransactionalIdBook"
    producer: str
    name: str
    producer_id: int
    epoch: int
    init: Init
    superseded: bool = False
    """Another session got a later epoch: every later request of this one must be refused."""

    def __repr__(self) -> str:
        return self.name

    @property
    def identity(self) -> Identity:
        return self.producer_id, self.epoch

    @property
    def may_be_fenced(self) -> bool:
        return any(
            init.settled_tick is None or init.settled_tick > self.init.asked_tick
            for init in self.owner.inits
            if init is not self.init or init.settled_tick is None
        )


class TransactionalIdBook:
    def __init__(self, name: str) -> None:
        self.name = name
        self.sessions = 0
        self.inits: list[Init] = []
        self._latest: Session | None = None
        self._given: dict[Identity, str] = {}

    def asking(self, tick: int) -> Init:
        init = Init(tick)
        self.inits.append(init)
        return init

    def given(self, producer: str, identity: Identity, init: Init) -> Session:
        """A producer got its identity."""
        self.sessions += 1
        self._give(identity, producer)
        session = Session(self, producer, f"{producer}#{self.sessions}", *identity, init)
        latest = self._latest
        if latest is None or latest.identity < identity:
            if latest is not None:
                latest.superseded = True
            self._latest = session
        else:
            session.superseded = True
        return session

    def moved_on(self, session: Session, identity: Identity) -> None:
        """The end of a transaction gave its producer the next epoch."""
        self._give(identity, session.producer)
        session.producer_id, session.epoch = identity

    def _give(self, identity: Identity, producer: str) -> None:
        before = self._given.setdefault(identity, producer)
        if before != producer:
            raise Violation("a producer epoch is given once", f"{self.name} {identity} went to {before} and {producer}")


class TransactionLedger:
    def __init__(self, ticks: Ticks) -> None:
        self.durable = True
        """Whether the logs of coordinators and of topics that transactions write to survive a power loss."""
        self.may_hang = False
        """A power loss may have lost the end of a transaction, which then stays open forever."""
        self.ids: dict[str, TransactionalIdBook] = {}
        self.transactions: list[TransactionBook] = []
        self.of_value: dict[bytes, TransactionBook] = {}
        self._ticks = ticks

    def id_named(self, name: str) -> TransactionalIdBook:
        return self.ids.setdefault(name, TransactionalIdBook(name))

    def begin(self, session: Session) -> TransactionBook:
        name = f"{session.name}/{len(self.transactions)}"
        transaction = TransactionBook(name, session, self._ticks.next())
        self.transactions.append(transaction)
        return transaction

    def sent(self, transaction: TransactionBook, book: "PartitionBook", values: list[bytes]) -> None:
        transaction.values.setdefault(book, []).extend(values)
        for value in values:
            self.of_value[value] = transaction

    def power_lost(self) -> None:
        if not self.durable:
            self.may_hang = True
            for transaction in self.transactions:
                transaction.suspended = True
