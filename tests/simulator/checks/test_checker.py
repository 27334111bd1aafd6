"""The checker with constructed answers: each promise has an answer that breaks it, and one that does not."""

import pytest

from quire.protocol.messages.fetch import PartitionData
from quire.protocol.records import Record, build_batch
from simulator.checks.checker import Checker
from simulator.ledger import FLUSH_MESSAGES, Floor, Known, Ledger, Setting, TopicBook
from tests.simulator.expected_violation import expect

NOBODY_KNOWS = Floor(0, 0)
NOTHING_TOLD_IS_LOST = "with flush.messages=1 a power loss loses nothing that a client has seen"


class Run:
    """A ledger with one partition, a plain producer's records a, b, c ... and an idempotent one's x, y, z."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.checker = Checker(self.ledger)
        topic = TopicBook("t", bytes(16), 1, stays=True)
        self.ledger.topics[topic.topic_id] = topic
        self.book = topic.partitions[0]
        for number, value in enumerate((b"a", b"b", b"c")):
            self.book.send(value, "plain", number, idempotent=False)
        for number, value in enumerate((b"x", b"y", b"z")):
            self.book.send(value, "careful", number, idempotent=True)

    def acknowledge(self, offset: int, *values: bytes, floor: Floor = NOBODY_KNOWS, first_try: bool = True) -> None:
        self.checker.acknowledged(self.book, self.ledger.era, floor, offset, values, first_try=first_try)

    def fetch(
        self,
        *values: bytes,
        at: int = 0,
        wanted: int | None = None,
        high_watermark: int | None = None,
        log_start_offset: int = 0,
        floor: Floor = NOBODY_KNOWS,
        damage: bool = False,
    ) -> list[bytes | None] | None:
        """One batch with these values at offset `at`."""
        content = b""
        if values:
            content = bytes(build_batch([Record(0, 1000, None, value) for value in values], base_offset=at))
        if damage:
            content = content[:-1] + bytes([content[-1] ^ 1])
        answer = PartitionData(
            partition_index=0,
            high_watermark=at + len(values) if high_watermark is None else high_watermark,
            log_start_offset=log_start_offset,
            records=content,
        )
        wanted = at if wanted is None else wanted
        found = self.checker.fetches.check(self.book, self.ledger.era, floor, wanted, answer)
        return None if found is None else [record.value for record in found.records]


@pytest.fixture
def run() -> Run:
    return Run()


def test_an_acknowledged_record_may_be_read_at_its_offset(run: Run) -> None:
    run.acknowledge(0, b"a", b"b")
    assert run.fetch(b"a", b"b", wanted=1, floor=run.book.floor()) == [b"b"]


def test_an_offset_keeps_its_record(run: Run) -> None:
    run.acknowledge(0, b"a", b"b")
    with expect("an offset keeps its record"):
        run.fetch(b"b", b"a")


def test_records_read_once_are_read_again(run: Run) -> None:
    run.fetch(b"a", b"b")
    with expect("an offset keeps its record"):
        run.fetch(b"c", at=1, high_watermark=2)


def test_a_new_batch_comes_behind_everything_known_when_it_was_sent(run: Run) -> None:
    run.acknowledge(5, b"a", floor=Floor(5, 0))
    with expect("an offset is given once"):
        run.acknowledge(4, b"b", floor=Floor(5, 0))
    run.acknowledge(4, b"b", floor=Floor(5, 0), first_try=False)


def test_the_end_never_goes_back(run: Run) -> None:
    run.acknowledge(0, b"a", b"b", b"c")
    floor = run.book.floor()
    run.fetch(b"a", high_watermark=3, floor=floor)
    with expect("the high watermark never goes back for a reader"):
        run.fetch(b"a", high_watermark=2, floor=floor)
    with expect("the high watermark never goes back for a reader"):
        run.checker.bounds.listed_end(run.book, 0, floor, 2)


def test_an_answer_may_be_older_than_what_became_known_after_its_request(run: Run) -> None:
    floor = run.book.floor()
    run.acknowledge(0, b"a", b"b", b"c")
    assert run.fetch(b"a", high_watermark=1, floor=floor) == [b"a"]


def test_the_start_never_goes_back_and_never_moves_unasked(run: Run) -> None:
    run.book.deletion_asked = 2
    run.checker.bounds.deleted_records(run.book, 0, NOBODY_KNOWS, 2)
    with expect("the log start offset never goes back"):
        run.fetch(log_start_offset=1, high_watermark=9, floor=run.book.floor())
    with expect("no record is deleted unasked or before it expires"):
        run.fetch(log_start_offset=3, high_watermark=9, floor=run.book.floor())


def test_no_client_reads_past_the_high_watermark(run: Run) -> None:
    with expect("no client reads past the high watermark"):
        run.fetch(b"a", b"b", high_watermark=1)


def test_a_log_has_no_holes(run: Run) -> None:
    with expect("a log has no holes"):
        run.fetch(b"b", at=1, wanted=0)


def test_no_broken_batch_is_served(run: Run) -> None:
    with expect("no broken batch is served"):
        run.fetch(b"a", damage=True)


def test_only_sent_records_are_read(run: Run) -> None:
    with expect("what is read was sent"):
        run.fetch(b"something else")


def test_a_careful_producers_record_has_one_place(run: Run) -> None:
    run.acknowledge(0, b"x")
    with expect("an idempotent producer's record is in the log once"):
        run.fetch(b"x", at=1, high_watermark=2)


def test_a_plain_producers_record_may_be_there_as_often_as_it_was_sent(run: Run) -> None:
    run.book.send(b"a", "plain", 0, idempotent=False)
    run.checker.whole_logs.check(run.book, records_of(b"a", b"b", b"a"))
    with expect("a record is in the log as often as it was sent"):
        run.checker.whole_logs.check(run.book, records_of(b"a", b"b", b"b"))


@pytest.mark.parametrize(
    ("values", "promise"),
    [
        ((b"x", b"z"), "an idempotent producer's records are in send order, without a gap"),
        ((b"y", b"x"), "an idempotent producer's records are in send order, without a gap"),
        ((b"x", b"y", b"x"), "a record is in the log as often as it was sent"),
    ],
    ids=["a gap", "another order", "a duplicate"],
)
def test_a_careful_producers_records_are_in_order_without_a_gap(
    run: Run, values: tuple[bytes, ...], promise: str
) -> None:
    with expect(promise):
        run.checker.whole_logs.check(run.book, records_of(*values))


def test_a_log_may_begin_anywhere_in_a_careful_producers_records(run: Run) -> None:
    run.checker.whole_logs.check(run.book, records_of(b"y", b"a", b"z"))


def test_reading_is_refused_only_outside_of_the_log(run: Run) -> None:
    run.acknowledge(0, b"a", b"b")
    run.checker.bounds.out_of_range(run.book, 0, run.book.floor(), 3)
    with expect("the high watermark never goes back for a reader"):
        run.checker.bounds.out_of_range(run.book, 0, run.book.floor(), 1)
    run.book.deletion_asked = 2
    run.checker.bounds.out_of_range(run.book, 0, run.book.floor(), 1)


def test_a_time_is_found_at_its_first_record(run: Run) -> None:
    for offset, timestamp in enumerate((1000, 3000, 2000)):
        run.book.learn(offset, Known(b"a", "read", timestamp), idempotent=False)
    floor = run.book.floor()
    run.checker.bounds.listed_time(run.book, 0, floor, 1500, 1)
    run.checker.bounds.listed_time(run.book, 0, floor, 4000, -1)
    for wrong in (0, 2, -1):
        with expect("a time is found"):
            run.checker.bounds.listed_time(run.book, 0, floor, 1500, wrong)


def test_a_producer_id_is_given_once(run: Run) -> None:
    run.checker.producer_id(5, "one")
    with expect("a producer id is given once"):
        run.checker.producer_id(5, "another")


class TestAfterAPowerLoss:
    def test_the_end_of_the_log_may_be_lost_and_its_offsets_given_again(self, run: Run) -> None:
        run.acknowledge(0, b"a", b"b")
        run.ledger.power_lost()
        assert run.checker.losses.found_after_power_loss(run.book, 0, 1) == 1
        run.acknowledge(1, b"c", floor=run.book.floor())
        assert run.fetch(b"a", b"c", floor=run.book.floor()) == [b"a", b"c"]

    def test_the_surviving_records_are_a_prefix_of_what_was_there(self, run: Run) -> None:
        run.acknowledge(0, b"a", b"b")
        run.ledger.power_lost()
        with expect("an offset keeps its record"):
            run.fetch(b"b")

    def test_flushed_records_survive(self, run: Run) -> None:
        run.acknowledge(0, b"a", b"b")
        run.ledger.flushed([((bytes(16), 0), 2)])
        run.ledger.power_lost()
        with expect("what was flushed survives a power loss"):
            run.checker.losses.found_after_power_loss(run.book, 0, 1)

    def test_an_answer_from_before_says_nothing_but_what_was_flushed(self, run: Run) -> None:
        run.ledger.flushed([((bytes(16), 0), 1)])
        run.ledger.power_lost()
        run.ledger.flushed([((bytes(16), 0), 5)])
        run.checker.acknowledged(run.book, 0, NOBODY_KNOWS, 0, [b"a", b"b"], first_try=True)
        assert list(run.book.known) == [0]
        answer = PartitionData(partition_index=0, high_watermark=9, records=b"")
        assert run.checker.fetches.check(run.book, 0, NOBODY_KNOWS, 0, answer) is None
        assert run.book.end_offset == 1


def records_of(*values: bytes) -> list[Record]:
    return [Record(offset, 0, None, value) for offset, value in enumerate(values)]


class TestWithFlushMessages1:
    @pytest.fixture
    def run(self) -> Run:
        run = Run()
        run.book.topic.settings[FLUSH_MESSAGES] = Setting("1")
        return run

    def lose_power(self, run: Run, end_offset: int) -> int:
        run.ledger.power_lost()
        return run.checker.losses.found_after_power_loss(run.book, 0, end_offset)

    def test_a_power_loss_takes_nothing_that_was_acknowledged(self, run: Run) -> None:
        run.checker.acknowledged(run.book, 0, NOBODY_KNOWS, 0, [b"a", b"b"], first_try=True, flushed=True)
        with expect(NOTHING_TOLD_IS_LOST):
            self.lose_power(run, 1)

    def test_a_power_loss_takes_nothing_that_was_read(self, run: Run) -> None:
        run.fetch(b"a", high_watermark=2)
        with expect(NOTHING_TOLD_IS_LOST):
            self.lose_power(run, 1)

    def test_unacknowledged_records_may_be_lost(self, run: Run) -> None:
        run.fetch(b"a", high_watermark=1)
        assert self.lose_power(run, 1) == 0

    def test_an_acknowledgement_in_transit_is_accepted(self, run: Run) -> None:
        run.ledger.power_lost()
        run.checker.acknowledged(run.book, 0, NOBODY_KNOWS, 0, [b"a"], first_try=True, flushed=True)
        with expect(NOTHING_TOLD_IS_LOST):
            run.checker.losses.found_after_power_loss(run.book, 0, 0)

    def test_records_read_before_the_setting_changed_may_be_lost(self, run: Run) -> None:
        run.book.topic.flush_changes = 1
        run.fetch(b"a")
        assert self.lose_power(run, 0) == 1

    def test_a_setting_is_certain_only_while_no_client_changes_it(self, run: Run) -> None:
        topic = run.book.topic
        assert topic.flushed_since == 0
        topic.flush_changes += 1
        topic.settings[FLUSH_MESSAGES].doubtful.append("5")
        assert topic.flushed_since is None
        topic.settings[FLUSH_MESSAGES].doubtful.clear()
        assert topic.flushed_since == 1
