"""One partition's batches on their way: in order, each once, through retries.

Batches leave in the order they were filled, several at a time, to one leader at a time. When one comes back refused,
nothing more is sent until the others in flight have come back too; then those that were refused go out again, oldest
first and one by one.

With an identity (an idempotent producer) each batch carries a sequence number, and keeps it however often it is sent:
that is what lets a broker recognise a repeat, as long as it is among the producer's last five batches. One by one, it
is. A broker takes any number from a producer it does not know yet, so the first batch of an identity travels alone:
were it refused and the one behind it taken, it could never be delivered in its place.

If a batch is given up, the numbers after it cannot be used any more, because the broker would wait for the missing one.
The producer then goes on under a new epoch with numbers from 0. Batches that a broker has definitely refused are
numbered anew; a batch whose fate is unknown must not be, as it could then be in the log twice, so it is given up too.
"""

import itertools
from collections import deque

from quire.client.batch import SEQUENCES, Batch, Identity
from quire.client.offsets import TopicPartition


class PartitionQueue:
    __slots__ = (
        "_identity",
        "_introduced",
        "_next_sequence",
        "in_flight",
        "leader",
        "open",
        "place",
        "ready",
        "rest_until_ms",
    )

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.open: Batch | None = None
        self.ready: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.leader = -1
        self.rest_until_ms = 0.0
        self._identity: Identity | None = None
        self._introduced = False
        self._next_sequence = 0

    def close_open(self) -> None:
        """The batch being filled is complete."""
        if self.open is not None:
            self.ready.append(self.open)
            self.open = None

    def sendable(self, leader: int, identity: Identity | None, now_ms: float) -> bool:
        """Whether the next batch may go to this leader now, under this identity (None: not idempotent)."""
        if not self.ready or now_ms < self.rest_until_ms:
            return False
        if not self.in_flight:
            return True
        if leader != self.leader or self.ready[0].retried or self.in_flight[0].retried:
            return False
        if identity is None:
            return True
        # A new epoch begins only when nothing of the old one can still be answered.
        return self._introduced and (self.ready[0].identity is not None or identity == self._identity)

    def take(self, leader: int, identity: Identity | None) -> Batch:
        """The next batch, now in flight."""
        self.leader = leader
        batch = self.ready.popleft()
        if identity is not None and batch.identity is None:
            if identity != self._identity:
                self._identity, self._next_sequence, self._introduced = identity, 0, False
            batch.stamp(identity, self._next_sequence)
            self._next_sequence = (self._next_sequence + batch.delivery.count) % SEQUENCES
        self.in_flight.append(batch)
        return batch

    def delivered(self, batch: Batch) -> None:
        self.in_flight.remove(batch)
        if batch.identity == self._identity:
            self._introduced = True

    def given_up(self, batch: Batch) -> None:
        self.in_flight.remove(batch)

    def counts(self, batch: Batch) -> bool:
        """Whether giving this batch up leaves a gap in the numbers in use."""
        return batch.identity is not None and batch.identity == self._identity

    def is_oldest(self, batch: Batch) -> bool:
        """Whether every batch before it is settled, so that a gap in front of it is not of our making."""
        return all(other.order >= batch.order for other in (*self.in_flight, *self.ready))

    def retry(self, batch: Batch, *, uncertain: bool) -> bool:
        """Puts a batch that came back in line again; false if it must be given up, as it may be in the log already."""
        batch.uncertain |= uncertain
        if batch.identity is not None and batch.identity != self._identity:
            if batch.uncertain:
                return False
            batch.unstamp()
        self.in_flight.remove(batch)
        batch.retried = True
        older = [other for other in self.ready if other.order < batch.order]
        self.ready = deque([*older, batch, *itertools.islice(self.ready, len(older), None)])
        return True

    def start_over(self) -> list[Batch]:
        """Ends the numbering in use here after a gap; comes back with the waiting batches that must be given up."""
        self._identity = None
        lost = [batch for batch in self.ready if batch.identity is not None and batch.uncertain]
        self.ready = deque(batch for batch in self.ready if batch not in lost)
        for batch in self.ready:
            batch.unstamp()
        return lost

    def drop(self) -> list[Batch]:
        """Takes out all that wait, some of which may have been in flight before."""
        dropped, self.ready = list(self.ready), deque()
        return dropped

    def expire(self, now_ms: float) -> list[Batch]:
        """Takes out the waiting batches whose time is over."""
        expired = [batch for batch in self.ready if batch.deadline_ms <= now_ms]
        if expired:
            self.ready = deque(batch for batch in self.ready if batch.deadline_ms > now_ms)
        return expired
