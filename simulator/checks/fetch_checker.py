"""Checks the answers to fetches: the batches are intact and in order, without holes, and end where readers may read.

Batch by batch, what was read becomes known (`known_records`), and the bounds that the answer gives are compared with
earlier ones (`log_bounds`).
"""

from typing import NamedTuple

from quire.protocol.messages.fetch import PartitionData
from quire.protocol.records import BatchHeader, InvalidRecords, Record, walk_batches
from simulator.checks.known_records import KnownRecords
from simulator.checks.log_bounds import LogBounds, reached
from simulator.checks.read_committed import Filter, as_marker
from simulator.checks.served import records_of
from simulator.checks.superseded import is_compacted
from simulator.checks.transaction_checker import TransactionChecker
from simulator.ledger import Floor, Known, Ledger, PartitionBook
from simulator.violation import Violation


class CheckedFetch(NamedTuple):
    records: list[Record]
    next_offset: int
    """Where the next fetch continues; the offset that was asked for if there are no batches."""
    last_epoch: int
    """The leader epoch of the last batch; -1 if there is none."""


class FetchChecker:
    def __init__(
        self, ledger: Ledger, bounds: LogBounds, known: KnownRecords, transactions: TransactionChecker
    ) -> None:
        self._ledger = ledger
        self._bounds = bounds
        self._known = known
        self._transactions = transactions

    def check(
        self,
        book: PartitionBook,
        era: int,
        floor: Floor,
        wanted_offset: int,
        answer: PartitionData,
        *,
        committed_only: bool = False,
    ) -> CheckedFetch | None:
        """The records of an answer from `wanted_offset` on; None if records may have been lost after the request.

        With `committed_only`, only the records that a read_committed reader sees. Otherwise transaction markers are
        included, as records with a special value (`read_committed`).
        """
        assert not isinstance(answer.records, list)
        content = bytes(answer.records or b"")
        bounds = self._bounds
        if bounds.is_outdated(book, era, floor) or (floor.epoch is None and _shows_what_was_lost(book, content)):
            return None
        self._ledger.counts.checks += 1
        self._check_bounds(book, floor, answer)
        limit, view = answer.high_watermark, None
        if committed_only:
            bounds.check_stable(book, floor, answer.last_stable_offset)
            limit, view = answer.last_stable_offset, Filter(answer.aborted_transactions or [])
        found = self._check_batches(book, content, wanted_offset, _Limit(limit, view), floor.epoch)
        # Quire's own consumer does not say which node answered, and in which epoch that one led.
        if floor.epoch is not None or book.leadership.newest < 0 or book.era == 0:
            reached(book, answer.high_watermark, floor.epoch)
        return found._replace(records=[record for record in found.records if record.offset >= wanted_offset])

    def _check_bounds(self, book: PartitionBook, floor: Floor, answer: PartitionData) -> None:
        just_elected = floor.end_epoch != floor.epoch
        self._bounds.check_end(book, floor, answer.high_watermark, just_elected=just_elected)
        if answer.log_start_offset >= 0:
            self._bounds.check_start(book, floor, answer.log_start_offset)
            book.start_offset = max(book.start_offset, answer.log_start_offset)
        if answer.log_start_offset > answer.high_watermark:
            raise Violation("nothing is deleted that is not committed", f"{book} starts beyond its high watermark")
        if answer.last_stable_offset > answer.high_watermark:
            raise Violation("no client reads past the high watermark", f"{book} has a last stable offset beyond it")

    def _check_batches(
        self, book: PartitionBook, content: bytes, wanted_offset: int, limit: "_Limit", epoch: int | None
    ) -> CheckedFetch:
        found: list[Record] = []
        next_offset, last_epoch = wanted_offset, -1
        for header in walk_batches(content):
            records = _decode(book, content, header)
            _check_position(book, header, next_offset, is_first=header.position == 0)
            limit.check(book, header)
            _check_offsets(book, header, records)
            if header.leader_epoch < last_epoch:
                raise Violation("leader epochs only rise", f"{book} at offset {header.base_offset}")
            if header.is_control:
                records = [as_marker(header, record) for record in records]
            for record in records:
                assert record.value is not None
                known = Known(bytes(record.value), "read", record.timestamp, header.leader_epoch)
                self._known.learn(book, record.offset, known, epoch)
            self._ledger.counts.records_read += len(records)
            if limit.view is None:
                found += records
            elif limit.view.shows(header):
                for record in records:
                    self._transactions.shown(book, record)
                found += records
            next_offset, last_epoch = header.next_offset, header.leader_epoch
        return CheckedFetch(found, next_offset, last_epoch)


class _Limit(NamedTuple):
    """Up to where a reader may read, and what it sees: everything, or what `view` shows to a read_committed reader."""

    offset: int
    view: Filter | None

    def check(self, book: PartitionBook, header: BatchHeader) -> None:
        if header.last_offset >= self.offset:
            what = "high watermark" if self.view is None else "last stable offset"
            raise Violation(
                f"no client reads past the {what}", f"{book} served offset {header.last_offset} at {what} {self.offset}"
            )


def _decode(book: PartitionBook, content: bytes, header: BatchHeader) -> list[Record]:
    try:
        return list(records_of(content[header.position : header.end]))
    except InvalidRecords as error:
        raise Violation("no broken batch is served", f"{book}: {error.message}") from error


def _check_position(book: PartitionBook, header: BatchHeader, next_offset: int, *, is_first: bool) -> None:
    """The first batch contains the requested offset, and may begin before it."""
    begins_right = header.base_offset <= next_offset if is_first else header.base_offset == next_offset
    if is_compacted(book.topic):
        begins_right = is_first or header.base_offset >= next_offset
    if not begins_right or header.last_offset < next_offset:
        raise Violation(
            "a log has no holes",
            f"{book} served offsets {header.base_offset} to {header.last_offset}; {next_offset} was next",
        )


def _check_offsets(book: PartitionBook, header: BatchHeader, records: list[Record]) -> None:
    offsets, all_offsets = [record.offset for record in records], range(header.base_offset, header.next_offset)
    if not is_compacted(book.topic):
        if offsets != list(all_offsets):
            raise Violation("a log has no holes", f"{book} has records missing at {header.base_offset}")
    elif offsets != sorted(set(offsets) & set(all_offsets)):
        raise Violation("offsets never change", f"{book} has {offsets} in the batch at {header.base_offset}")


def _shows_what_was_lost(book: PartitionBook, content: bytes) -> bool:
    """Whether there are records of a leader before the last loss, from where its log was cut."""
    settled = book.leadership.settled
    if settled < 0:
        return False
    return any(
        header.leader_epoch < settled and header.last_offset >= book.leadership.cut_at
        for header in walk_batches(content)
    )
