"""Where a log starts, where it ends and how far it is stable: none of these goes back for a client.

A record leaves a log at the start only, because a client deleted it or because retention may have (`expiry`). An answer
counts only if it is about the log as it is now: it `is_outdated` if records may have been lost since, or if it comes
from a leader of the time before.
"""

from collections.abc import Callable

from simulator.checks.expiry import gone_before
from simulator.checks.superseded import is_compacted
from simulator.ledger import Floor, Ledger, PartitionBook
from simulator.violation import Violation


class LogBounds:
    def __init__(self, ledger: Ledger, latest_ms: Callable[[], int]) -> None:
        self._ledger = ledger
        self._latest_ms = latest_ms

    def is_outdated(self, book: PartitionBook, era: int, floor: Floor) -> bool:
        """Whether an answer of this era, or of a leader of that time, says nothing about the log as it is now."""
        lost = era < book.era or book.unsettled or book.leadership.is_before_loss(floor.epoch)
        return lost or book.topic.given_up

    def check_end(self, book: PartitionBook, floor: Floor, end_offset: int, *, just_elected: bool = False) -> None:
        """A leader that was `just_elected` learns from its followers how far the log is committed.

        Until then it returns what it knows to readers, and no end at all to clients that ask for the end (KIP-207).
        """
        self._ledger.counts.checks += 1
        if floor.epoch is not None and (just_elected or not book.leadership.is_current(floor.epoch)):
            return
        if end_offset < floor.end_offset:
            raise Violation(
                "the high watermark never goes back for a reader",
                f"{book} ends at {end_offset}, but had ended at {floor.end_offset} before the request",
            )

    def check_start(self, book: PartitionBook, floor: Floor, start_offset: int) -> None:
        self._ledger.counts.checks += 1
        # Each replica deletes what has expired by itself. What was deleted on request is gone from all that are up; one
        # that is down may be eligible, and lead later with what it still has.
        alone = floor.epoch is None or book.topic.replication_factor == 1
        earliest = floor.start_offset if alone else floor.deleted if book.leadership.is_current(floor.epoch) else 0
        if start_offset < earliest:
            raise Violation(
                "the log start offset never goes back",
                f"{book} starts at {start_offset}, but had started at {earliest} before the request",
            )
        if start_offset > max(book.deletion_asked, book.start_offset):
            first_kept = gone_before(book, self._latest_ms())
            if start_offset > first_kept:
                raise Violation(
                    "no record is deleted unasked or before it expires",
                    f"{book} starts at {start_offset}; no client asked to delete beyond {book.deletion_asked}, "
                    f"and {first_kept} must still exist",
                )

    def check_stable(self, book: PartitionBook, floor: Floor, stable_offset: int) -> None:
        current = book.leadership.is_current(floor.epoch)
        comparable = floor.epoch is None or (current and floor.stable_epoch == floor.epoch)
        if stable_offset < floor.stable_offset and comparable:
            raise Violation(
                "the last stable offset never goes back for a reader",
                f"{book} is stable up to {stable_offset}, but was up to {floor.stable_offset} before the request",
            )
        if stable_offset > book.stable_offset:
            book.stable_offset, book.stable_epoch = stable_offset, -1 if floor.epoch is None else floor.epoch

    def deleted_records(self, book: PartitionBook, era: int, floor: Floor, low_watermark: int) -> None:
        if not self.is_outdated(book, era, floor):
            self.check_start(book, floor, low_watermark)
            book.start_offset = max(book.start_offset, low_watermark)
            if not book.leadership.is_current(floor.epoch):
                return  # A deposed leader does not know the ISR, and waits for nobody that it believes to be down.
            for node in book.replicas.isr:
                book.deleted[node] = max(book.deleted.get(node, 0), low_watermark)

    def out_of_range(self, book: PartitionBook, era: int, floor: Floor, wanted_offset: int) -> None:
        """A reader got OFFSET_OUT_OF_RANGE."""
        if self.is_outdated(book, era, floor) or not book.deletion_asked <= wanted_offset <= floor.end_offset:
            return
        if not book.leadership.is_current(floor.epoch):
            return
        if not self.may_be_deleted(book, wanted_offset):
            raise Violation(
                "the high watermark never goes back for a reader",
                f"{book} says that {wanted_offset} is out of range, but it has ended at {floor.end_offset}",
            )

    def may_end_before(self, book: PartitionBook, era: int, floor: Floor) -> bool:
        """Whether an answer may come from a log, or a leader, that does not reach up to the floor."""
        return era < book.era or (floor.epoch is not None and floor.epoch != floor.end_epoch)

    def may_be_deleted(self, book: PartitionBook, offset: int) -> bool:
        """Whether the offset may have been deleted, by a client or by retention."""
        return offset < gone_before(book, self._latest_ms())

    def listed_end(self, book: PartitionBook, era: int, floor: Floor, offset: int) -> None:
        if not self.is_outdated(book, era, floor):
            self.check_end(book, floor, offset)
            reached(book, offset, floor.epoch)

    def listed_start(self, book: PartitionBook, era: int, floor: Floor, offset: int) -> None:
        if not self.is_outdated(book, era, floor):
            self.check_start(book, floor, offset)
            book.start_offset = max(book.start_offset, offset)

    def listed_time(self, book: PartitionBook, era: int, floor: Floor, timestamp: int, offset: int) -> None:
        """The node reports `offset` (-1: none) as the first with `timestamp` or later."""
        if self.is_outdated(book, era, floor) or not book.leadership.is_current(floor.epoch):
            return
        self._ledger.counts.checks += 1
        found = book.known.get(offset)
        if found is not None and found.timestamp is not None and found.timestamp < timestamp:
            raise Violation("a time is found", f"{book} found {offset} for {timestamp}, but it has {found.timestamp}")
        if is_compacted(book.topic):
            return
        first_kept = gone_before(book, self._latest_ms())
        for each, known in book.known.items():
            # Records may have been deleted since they were read, but not before they expired.
            expected = known.timestamp is not None and known.timestamp >= timestamp and each >= first_kept
            if expected and each < floor.end_offset and (offset == -1 or each < offset):
                raise Violation("a time is found", f"{book} found {offset} for {timestamp}, but {each} is earlier")


def reached(book: PartitionBook, end_offset: int, epoch: int | None) -> None:
    """A client has learned that a log reaches this offset."""
    book.reached(end_offset, epoch)
    if book.topic.flushed_since == 0:
        book.promised = max(book.promised, end_offset)
