"""The batches of one partition: sent in order, and each written once, through retries.

Batches are sent in the order in which they were filled, several at a time, to one leader at a time. When one is
refused, no more are sent until the others in flight are answered; then the refused batches are sent again, oldest first
and one by one.

With an identity (an idempotent producer) each batch has a sequence number, which it keeps through retries. With it the
broker recognises a repeated batch, as long as it is among the producer's last five; sending retries one by one ensures
that. A broker accepts any number from a producer that it does not know yet, so the first batch of an identity is sent
alone: if it were refused and the next one accepted, the first could never be written in order.

If a batch fails, the sequence numbers after it cannot be used, because the broker would wait for the missing one. The
producer then continues with a new epoch and numbers from 0. Batches that a broker has certainly refused get new
numbers. A batch that may be in the log must not, because it could then be there twice, so it fails too.
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
        "backoff_until_ms",
        "in_flight",
        "leader",
        "open",
        "ready",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.open: Batch | None = None
        self.ready: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.leader = -1
        self.backoff_until_ms = 0.0
        self._identity: Identity | None = None
        self._introduced = False
        self._next_sequence = 0

    @property
    def record_count(self) -> int:
        """The records of all batches, in flight or not."""
        batches = [*self.in_flight, *self.ready, *([] if self.open is None else [self.open])]
        return sum(batch.delivery.count for batch in batches)

    def close_open(self) -> None:
        """Adds the open batch to those that are ready to be sent."""
        if self.open is not None:
            self.ready.append(self.open)
            self.open = None

    def sendable(self, leader: int, identity: Identity | None, now_ms: float) -> bool:
        """Whether the next batch may be sent to this leader now, with this identity (None: not idempotent)."""
        if not self.ready or now_ms < self.backoff_until_ms:
            return False
        if not self.in_flight:
            return True
        if leader != self.leader or self.ready[0].retried or self.in_flight[0].retried:
            return False
        if identity is None:
            return True
        # A new epoch begins only when no batch of the old one is in flight.
        return self._introduced and (self.ready[0].identity is not None or identity == self._identity)

    def take(self, leader: int, identity: Identity | None) -> Batch:
        """The next batch, which is in flight from now on."""
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
        """Whether the failure of this batch leaves a gap in the current sequence numbers."""
        return batch.identity is not None and batch.identity == self._identity

    def is_oldest(self, batch: Batch) -> bool:
        """Whether no batch before it is ready or in flight, so that a gap before it is not this producer's doing."""
        return all(other.order >= batch.order for other in (*self.in_flight, *self.ready))

    def retry(self, batch: Batch, *, uncertain: bool) -> bool:
        """Queues a refused batch again, at its old position; false if it must fail, as it may be in the log already."""
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
        """Ends the current sequence numbers after a gap; returns the waiting batches that must fail."""
        self._identity = None
        lost = [batch for batch in self.ready if batch.identity is not None and batch.uncertain]
        self.ready = deque(batch for batch in self.ready if batch not in lost)
        for batch in self.ready:
            batch.unstamp()
        return lost

    def drop(self) -> list[Batch]:
        """Removes all waiting batches, some of which may have been sent before."""
        dropped, self.ready = list(self.ready), deque()
        return dropped

    def expire(self, now_ms: float) -> list[Batch]:
        """Removes the waiting batches whose deadline has passed."""
        expired = [batch for batch in self.ready if batch.deadline_ms <= now_ms]
        if expired:
            self.ready = deque(batch for batch in self.ready if batch.deadline_ms > now_ms)
        return expired
