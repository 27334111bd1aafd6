"""The promises of a node, checked against each answer when it arrives (the list is in docs/architecture.md).

Every method takes an answer and what was known when the request was sent (`Floor`), raises `Violation` if the two
cannot both be true, and writes new knowledge into the ledger. A partition has one leader, so an answer must agree with
everything that any client had learned of it before the request was sent.

What holds after which fault:

- A process kill loses nothing: acknowledged records stay, and records that were read can be read again.
- A power loss may lose records, but only from the end of a log, and none that the log had flushed. Their replacements
  have another leader epoch. An answer that was in transit at the power loss says nothing about the log found
  afterwards, except for what was flushed.
- Records disappear from the start of a log if a client deleted them, or if retention may have (`simulator.expiry`). A
  log never starts earlier than it was seen to start.
- While flush.messages is 1, a power loss loses nothing that was acknowledged; if it has been 1 from the beginning,
  nothing that any client has seen.
- Compaction removes a record only if there is a later one with the same key (`simulator.superseded`).
- Acknowledged metadata and allocated producer ids survive both faults.
- The promises of transactions are in `simulator.transaction_checker`.
"""

from collections.abc import Callable, Sequence

from quire.protocol.messages.fetch import PartitionData
from quire.protocol.records import InvalidRecords, Record, walk_batches
from simulator.expiry import gone_before
from simulator.ledger import Floor, Known, Ledger, PartitionBook
from simulator.read_committed import Filter, as_marker, marker_of
from simulator.served import records_of
from simulator.superseded import check_survivors, is_compacted
from simulator.transaction_checker import TransactionChecker
from simulator.violation import Violation

SURVIVES = "a record with acks=all survives unless all that were in sync lost power"
FLUSHED_SURVIVES = "with flush.messages=1 a power loss loses nothing that a client has seen"
HELD = "what a leader acknowledged alone is there while it leads"


class Checker:
    def __init__(self, ledger: Ledger, latest_ms: Callable[[], int] = lambda: 0) -> None:
        """`latest_ms` is the latest time that a node's clock has shown so far."""
        self._ledger = ledger
        self._latest_ms = latest_ms
        self.transactions = TransactionChecker(ledger)
        self.read_up_to = 0
        """Where to continue after the last fetch, and the leader epoch of the batch before that (-1: there is none)."""
        self.read_epoch = -1
        self._epoch: int | None = None
        """In which the node led, when the request was sent whose answer is checked now."""

    # --- Writing

    def acknowledged(
        self,
        book: PartitionBook,
        era: int,
        floor: Floor,
        base_offset: int,
        values: Sequence[bytes],
        *,
        first_try: bool,
        flushed: bool = False,
        by_all: bool = True,
    ) -> None:
        """A producer got an acknowledgement: its records start at `base_offset`, and are synced if `flushed`.

        Unless it waited for all replicas (`by_all`), they may be lost with their leader.
        """
        self._ledger.counts.checks += 1
        self._ledger.counts.write_acknowledged(book.acknowledges(values))
        late = self._is_over(book, era, floor)
        self._epoch = floor.epoch
        if not by_all and book.topic.replication_factor > 1:
            if not late and floor.epoch is not None:
                self._hold(book, floor.epoch, base_offset, values)
            return
        if first_try and not late and base_offset < floor.end_offset and book.leadership.is_current(floor.epoch):
            raise Violation(
                "an offset is given once",
                f"{book} gave {base_offset} to a new batch, but ended at {floor.end_offset} before it was sent",
            )
        flushed = flushed and not book.topic.given_up
        for offset, value in enumerate(values, base_offset):
            if flushed or not late or offset < book.surely_kept(era):
                self._learn(book, offset, Known(value, "acknowledged"))
        if flushed:
            book.promised = max(book.promised, base_offset + len(values))

    def _hold(self, book: PartitionBook, epoch: int, base_offset: int, values: Sequence[bytes]) -> None:
        """What one leader has acknowledged alone is there while it leads, and no other record has that place."""
        if book.leadership.is_current(epoch):
            for offset, value in enumerate(values, base_offset):
                _check_unique(book, offset, epoch, value)
                if offset not in book.known:
                    book.tentative[epoch, offset] = value

    def deleted_records(self, book: PartitionBook, era: int, floor: Floor, low_watermark: int) -> None:
        if not self._is_over(book, era, floor):
            self._check_start(book, floor, low_watermark)
            book.start_offset = max(book.start_offset, low_watermark)
            for node in book.replicas.isr:
                book.deleted[node] = max(book.deleted.get(node, 0), low_watermark)

    # --- Reading

    def fetched(
        self,
        book: PartitionBook,
        era: int,
        floor: Floor,
        wanted_offset: int,
        answer: PartitionData,
        *,
        committed_only: bool = False,
    ) -> list[Record] | None:
        """The records of an answer from `wanted_offset` on; None if records may have been lost after the request.

        With `committed_only`, only the records that a read_committed reader sees. Otherwise transaction markers are
        included, as records with a special value (`simulator.read_committed`).
        """
        assert not isinstance(answer.records, list)
        content = bytes(answer.records or b"")
        if self._is_over(book, era, floor) or (floor.epoch is None and _shows_what_was_lost(book, content)):
            return None
        self._ledger.counts.checks += 1
        self._epoch = floor.epoch
        self._check_end(book, floor, answer.high_watermark, just_elected=floor.end_epoch != floor.epoch)
        if answer.log_start_offset >= 0:
            self._check_start(book, floor, answer.log_start_offset)
            book.start_offset = max(book.start_offset, answer.log_start_offset)
        if answer.log_start_offset > answer.high_watermark:
            raise Violation("nothing is deleted that is not committed", f"{book} starts beyond its high watermark")
        if answer.last_stable_offset > answer.high_watermark:
            raise Violation("no client reads past the high watermark", f"{book} has a last stable offset beyond it")
        limit = answer.high_watermark
        view: Filter | None = None
        if committed_only:
            self._check_stable(book, floor, answer.last_stable_offset)
            limit = answer.last_stable_offset
            view = Filter(answer.aborted_transactions or [])
        records = self._records(book, content, wanted_offset, limit, view)
        # Quire's own consumer does not say which node answered, and in which epoch that one led.
        if floor.epoch is not None or book.leadership.newest < 0 or book.era == 0:
            _reached(book, answer.high_watermark, floor.epoch)
        return [record for record in records if record.offset >= wanted_offset]

    def _check_stable(self, book: PartitionBook, floor: Floor, stable_offset: int) -> None:
        current = book.leadership.is_current(floor.epoch)
        comparable = floor.epoch is None or (current and floor.stable_epoch == floor.epoch)
        if stable_offset < floor.stable_offset and comparable:
            raise Violation(
                "the last stable offset never goes back for a reader",
                f"{book} is stable up to {stable_offset}, but was up to {floor.stable_offset} before the request",
            )
        if stable_offset > book.stable_offset:
            book.stable_offset, book.stable_epoch = stable_offset, -1 if floor.epoch is None else floor.epoch

    def _records(
        self, book: PartitionBook, content: bytes, next_offset: int, limit: int, view: Filter | None
    ) -> list[Record]:
        found: list[Record] = []
        leader_epoch = -1
        compacted = is_compacted(book.topic)
        self.read_up_to, self.read_epoch = next_offset, -1
        for number, header in enumerate(walk_batches(content)):
            try:
                records = list(records_of(content[header.position : header.end]))
            except InvalidRecords as error:
                raise Violation("no broken batch is served", f"{book}: {error.message}") from error
            # The first batch contains the requested offset, and may begin before it.
            begins_right = header.base_offset <= next_offset if number == 0 else header.base_offset == next_offset
            if compacted:
                begins_right = number == 0 or header.base_offset >= next_offset
            if not begins_right or header.last_offset < next_offset:
                raise Violation(
                    "a log has no holes",
                    f"{book} served offsets {header.base_offset} to {header.last_offset}; {next_offset} was next",
                )
            if header.last_offset >= limit:
                what = "high watermark" if view is None else "last stable offset"
                raise Violation(
                    f"no client reads past the {what}", f"{book} served offset {header.last_offset} at {what} {limit}"
                )
            offsets = [record.offset for record in records]
            if compacted and offsets != sorted(set(offsets) & set(range(header.base_offset, header.next_offset))):
                raise Violation("offsets never change", f"{book} has {offsets} in the batch at {header.base_offset}")
            if not compacted and offsets != list(range(header.base_offset, header.next_offset)):
                raise Violation("a log has no holes", f"{book} has records missing at {header.base_offset}")
            if header.leader_epoch < leader_epoch:
                raise Violation("leader epochs only rise", f"{book} at offset {header.base_offset}")
            leader_epoch = header.leader_epoch
            if header.is_control:
                records = [as_marker(header, record) for record in records]
            for record in records:
                assert record.value is not None
                self._learn(
                    book, record.offset, Known(bytes(record.value), "read", record.timestamp, header.leader_epoch)
                )
            self._ledger.counts.records_read += len(records)
            if view is None:
                found += records
            elif view.shows(header):
                for record in records:
                    self.transactions.shown(book, record)
                found += records
            self.read_up_to = next_offset = header.next_offset
            self.read_epoch = leader_epoch
        return found

    def _learn(self, book: PartitionBook, offset: int, known: Known) -> None:
        """Records what is at an offset: it must have been sent to this partition, and all clients must see the same."""
        written = book.written.get(known.value)
        is_marker = marker_of(known.value) is not None
        if written is None and not is_marker:
            raise Violation(
                "what is read was sent", f"{book} has {_text(known.value)} at {offset}, which no client sent there"
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
                f"{book} has {_text(known.value)} at {book.offset_of[known.value]} and at {offset}",
            )
        book.learn(offset, known, idempotent=idempotent, epoch=self._epoch)

    def _may_be_lost(self, book: PartitionBook, offset: int) -> bool:
        """Whether the record at this offset may be lost in a power loss since the log was last read."""
        survived = max(book.surely_kept(book.looked_at), book.promised)
        return book.looked_at < book.era and offset >= survived

    def out_of_range(self, book: PartitionBook, era: int, floor: Floor, wanted_offset: int) -> None:
        """A reader got OFFSET_OUT_OF_RANGE."""
        if self._is_over(book, era, floor) or not book.deletion_asked <= wanted_offset <= floor.end_offset:
            return
        if not book.leadership.is_current(floor.epoch):
            return
        if not self.may_start_behind(book, wanted_offset):
            raise Violation(
                "the high watermark never goes back for a reader",
                f"{book} says that {wanted_offset} is out of range, but it has ended at {floor.end_offset}",
            )

    def may_end_before(self, book: PartitionBook, era: int, floor: Floor) -> bool:
        """Whether an answer may come from a log, or a leader, that does not reach up to the floor."""
        return era < book.era or (floor.epoch is not None and floor.epoch != floor.end_epoch)

    def may_start_behind(self, book: PartitionBook, offset: int) -> bool:
        """Whether the offset may have been deleted, by a client or by retention."""
        return offset < gone_before(book, self._latest_ms())

    # --- Looking up

    def listed_end(self, book: PartitionBook, era: int, floor: Floor, offset: int) -> None:
        if not self._is_over(book, era, floor):
            self._check_end(book, floor, offset)
            _reached(book, offset, floor.epoch)

    def listed_start(self, book: PartitionBook, era: int, floor: Floor, offset: int) -> None:
        if not self._is_over(book, era, floor):
            self._check_start(book, floor, offset)
            book.start_offset = max(book.start_offset, offset)

    def listed_time(self, book: PartitionBook, era: int, floor: Floor, timestamp: int, offset: int) -> None:
        """The node reports `offset` (-1: none) as the first with `timestamp` or later."""
        if self._is_over(book, era, floor) or not book.leadership.is_current(floor.epoch):
            return
        self._ledger.counts.checks += 1
        found = book.known.get(offset)
        if found is not None and found.timestamp is not None and found.timestamp < timestamp:
            raise Violation("a time is found", f"{book} found {offset} for {timestamp}, but it has {found.timestamp}")
        if is_compacted(book.topic):
            return
        there_from = gone_before(book, self._latest_ms())
        for each, known in book.known.items():
            # Records may have been deleted since they were read, but not before they expired.
            expected = known.timestamp is not None and known.timestamp >= timestamp and each >= there_from
            if expected and each < floor.end_offset and (offset == -1 or each < offset):
                raise Violation("a time is found", f"{book} found {offset} for {timestamp}, but {each} is earlier")

    def _check_end(self, book: PartitionBook, floor: Floor, end_offset: int, *, just_elected: bool = False) -> None:
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

    def _check_start(self, book: PartitionBook, floor: Floor, start_offset: int) -> None:
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
            there_from = gone_before(book, self._latest_ms())
            if start_offset > there_from:
                raise Violation(
                    "no record is deleted unasked or before it expires",
                    f"{book} starts at {start_offset}; no client asked to delete beyond {book.deletion_asked}, "
                    f"and {there_from} must still exist",
                )

    def _is_over(self, book: PartitionBook, era: int, floor: Floor) -> bool:
        """Whether an answer of this era, or of a leader of that time, says nothing about the log as it is now."""
        lost = era < book.era or book.unsettled or book.leadership.is_before_loss(floor.epoch)
        return lost or book.topic.given_up

    # --- Producers

    def producer_id(self, producer_id: int, owner: str) -> None:
        self._ledger.counts.checks += 1
        before = self._ledger.producer_ids.setdefault(producer_id, owner)
        if before != owner:
            raise Violation("a producer id is given once", f"{producer_id} went to {before} and to {owner}")

    # --- The whole log

    def survivors(self, book: PartitionBook, records: Sequence[Record], end_offset: int) -> None:
        """Checks a compacted log up to `end_offset`, read while no client wrote; also after a power loss."""
        if is_compacted(book.topic):
            self._ledger.counts.checks += 1
            check_survivors(book, records, gone_before(book, self._latest_ms()), end_offset)

    def whole_log(self, book: PartitionBook, records: Sequence[Record]) -> None:
        """Checks everything in a log: no record more often than it was sent, idempotent ones in send order."""
        self._ledger.counts.checks += 1
        compacted = is_compacted(book.topic)
        copies: dict[bytes, int] = {}
        last_numbers: dict[str, int] = {}
        for record in records:
            value = bytes(record.value or b"")
            if marker_of(value) is not None:
                continue
            written = book.written[value]
            copies[value] = copies.get(value, 0) + 1
            if copies[value] > (1 if written.idempotent else written.copies):
                raise Violation(
                    "a record is in the log as often as it was sent",
                    f"{book} has {_text(value)}, sent {written.copies} times, {copies[value]} times",
                )
            if written.idempotent:
                expected = last_numbers.get(written.session, written.number - 1) + 1
                if written.number < expected or (written.number > expected and not compacted):
                    raise Violation(
                        "an idempotent producer's records are in send order, without a gap",
                        f"{book} has record {written.number} of {written.session} at {record.offset}, "
                        f"where {expected} is next",
                    )
                last_numbers[written.session] = written.number
        if book.topic.transactional:
            self.transactions.whole_log(book, records)

    def found_after_power_loss(self, book: PartitionBook, start_offset: int, end_offset: int) -> int:
        """The log was read from start to end before any client could write to it again: the ledger adopts this state.

        What is left agreed with the ledger while it was read, and had no gaps: it is a prefix of what was written.
        Returns how many records were lost.
        """
        if end_offset < book.flushed:
            raise Violation(
                "what was flushed survives a power loss",
                f"{book} ends at {end_offset}, but was on disk up to {book.flushed}",
            )
        if end_offset < book.promised:
            raise Violation(
                FLUSHED_SURVIVES,
                f"{book} ends at {end_offset}, but was promised up to {book.promised}",
            )
        book.looked_at = book.era
        lost = book.cut(start_offset, end_offset)
        self._ledger.counts.records_lost += lost
        return lost

    def settled(self, book: PartitionBook, start_offset: int, end_offset: int, kept: int) -> int:
        """In a cluster: the first leader after a loss has what is known up to `end_offset`, which is the truth now.

        Nothing below `kept` can be lost. Returns how many records are lost.
        """
        if end_offset < min(kept, book.end_offset):
            raise Violation(SURVIVES, f"{book} has kept {end_offset} of {book.end_offset}, but {kept} cannot be lost")
        if end_offset < book.promised:
            raise Violation(FLUSHED_SURVIVES, f"{book} ends at {end_offset}, but was promised up to {book.promised}")
        lost = book.cut(start_offset, end_offset)
        self._ledger.counts.records_lost += lost
        return lost

    def held_to_the_end(self, book: PartitionBook) -> None:
        """At the end: what the leader acknowledged alone is there if it still leads in the same epoch."""
        there_from = gone_before(book, self._latest_ms())
        for (epoch, offset), value in book.tentative.items():
            if epoch != book.leadership.newest or offset < there_from or is_compacted(book.topic):
                continue
            known = book.known.get(offset)
            if known is None or known.value != value:
                seen = "nothing" if known is None else _text(known.value)
                raise Violation(HELD, f"{book} has {seen} at {offset}, where {_text(value)} was acknowledged")


def _shows_what_was_lost(book: PartitionBook, content: bytes) -> bool:
    """Whether there are records of a leader before the last loss, from where its log was cut."""
    settled = book.leadership.settled
    if settled < 0:
        return False
    return any(
        header.leader_epoch < settled and header.last_offset >= book.leadership.cut_at
        for header in walk_batches(content)
    )


def _reached(book: PartitionBook, end_offset: int, epoch: int | None) -> None:
    """A client has learned that a log reaches this offset."""
    book.reached(end_offset, epoch)
    if book.topic.flushed_since == 0:
        book.promised = max(book.promised, end_offset)


def _check_same(book: PartitionBook, offset: int, before: Known, now: Known) -> None:
    if before.value != now.value:
        raise Violation(
            "an offset keeps its record",
            f"{book} had {_text(before.value)} at {offset} ({before.how}), and now {_text(now.value)} ({now.how})",
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
            f"{book} had {_text(first)} at {offset} in epoch {leader_epoch}, and now {_text(value)}",
        )


def _text(value: bytes) -> str:
    return value[:40].decode("ascii", "replace")
