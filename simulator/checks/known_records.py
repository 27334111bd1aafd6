"""What is known to be at each offset: an offset keeps its record, for every client and at any time.

A record becomes known when a client learns that it was acknowledged, or reads it. Only records that were sent to the
partition may be there. What a leader acknowledged alone (acks=1) is tentative: it holds while that leader leads.
"""

from collections.abc import Sequence

from simulator.checks.read_committed import marker_of
from simulator.ledger import Known, Ledger, PartitionBook
from simulator.violation import Violation


class KnownRecords:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def learn(self, book: PartitionBook, offset: int, known: Known, epoch: int | None) -> None:
        """Records what is at an offset. It must have been sent to this partition, and all clients must see the same.

        `epoch` is the one in which the node that answered led when the request was sent.
        """
        written = book.written.get(known.value)
        is_marker = marker_of(known.value) is not None
        if written is None and not is_marker:
            raise Violation(
                "what is read was sent", f"{book} has {as_text(known.value)} at {offset}, which no client sent there"
            )
        before = book.known.get(offset)
        is_another = before is not None and (before.value, before.leader_epoch) != (known.value, known.leader_epoch)
        if is_another and is_marker and self._may_be_lost(book, offset):
            # After a restart a coordinator ends open transactions at once, before a client has read what is left.
            self._ledger.counts.records_lost += book.forget(offset)
            before = None
        if before is not None:
            _check_same(book, offset, before, known)
        if known.leader_epoch is not None:
            _check_unique(book, offset, known.leader_epoch, known.value)
        idempotent = written is not None and written.idempotent
        if idempotent and book.offset_of.get(known.value, offset) != offset:
            raise Violation(
                "an idempotent producer's record is in the log once",
                f"{book} has {as_text(known.value)} at {book.offset_of[known.value]} and at {offset}",
            )
        book.learn(offset, known, idempotent=idempotent, epoch=epoch)

    def learn_tentatively(self, book: PartitionBook, epoch: int, base_offset: int, values: Sequence[bytes]) -> None:
        """A leader has acknowledged these alone: they are there while it leads, and it uses no offset twice."""
        if book.leadership.is_current(epoch):
            for offset, value in enumerate(values, base_offset):
                _check_unique(book, offset, epoch, value)
                if offset not in book.known:
                    book.tentative[epoch, offset] = value

    def _may_be_lost(self, book: PartitionBook, offset: int) -> bool:
        """Whether the record at this offset may be lost in a power loss since the log was last read."""
        survived = max(book.surely_kept(book.looked_at), book.promised)
        return book.looked_at < book.era and offset >= survived


def _check_same(book: PartitionBook, offset: int, before: Known, now: Known) -> None:
    if before.value != now.value:
        raise Violation(
            "an offset keeps its record",
            f"{book} had {as_text(before.value)} at {offset} ({before.how}), and now {as_text(now.value)} ({now.how})",
        )
    for was, is_now in ((before.leader_epoch, now.leader_epoch), (before.timestamp, now.timestamp)):
        if was is not None and is_now is not None and was != is_now:
            raise Violation("an offset keeps its record", f"{book} at {offset}: {was} became {is_now}")


def _check_unique(book: PartitionBook, offset: int, leader_epoch: int, value: bytes) -> None:
    """A reader that remembers the epoch and offset of its last record can detect that it was lost."""
    first = book.ever_read.setdefault((leader_epoch, offset), value)
    if first != value:
        raise Violation(
            "an offset is not used twice in one leader epoch",
            f"{book} had {as_text(first)} at {offset} in epoch {leader_epoch}, and now {as_text(value)}",
        )


def as_text(value: bytes) -> str:
    return value[:40].decode("ascii", "replace")
