"""Which records of a fetch response a read_committed reader sees, by the list of aborted transactions in it."""

from quire.protocol.messages.fetch import AbortedTransaction
from quire.protocol.records import Record, build_batch, read_header
from quire.storage.producers.end_marker import build_end_marker
from simulator.checks.read_committed import Filter, Marker, as_marker, marker_of


def shown(aborted: list[AbortedTransaction], *batches: bytearray) -> list[bool]:
    view = Filter(aborted)
    return [view.shows(read_header(batch)) for batch in batches]


def written(producer_id: int, offset: int, *, transactional: bool = True) -> bytearray:
    records = [Record(0, 1000, None, b"a"), Record(0, 1000, None, b"b")]
    return build_batch(
        records,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )


def marker(producer_id: int, offset: int, *, committed: bool) -> bytearray:
    batch = build_end_marker(producer_id, 0, committed=committed, coordinator_epoch=0, timestamp=1000)
    batch[:8] = offset.to_bytes(8, "big")
    return batch


def test_records_of_aborted_transactions_are_left_out_until_their_marker() -> None:
    aborted = [AbortedTransaction(producer_id=7, first_offset=2)]
    batches = (
        written(7, 0),
        written(7, 2),
        written(8, 4),
        marker(7, 6, committed=False),
        written(7, 7),
    )
    assert shown(aborted, *batches) == [True, False, True, False, True]


def test_a_reader_that_begins_in_the_middle_of_an_aborted_transaction_leaves_out_the_rest_of_it() -> None:
    assert shown([AbortedTransaction(producer_id=7, first_offset=2)], written(7, 8)) == [False]


def test_a_producer_that_is_aborted_may_write_without_a_transaction() -> None:
    assert shown([AbortedTransaction(producer_id=7, first_offset=0)], written(7, 0, transactional=False)) == [True]


def test_a_marker_in_the_ledger_is_a_value_that_can_be_parsed() -> None:
    batch = marker(7, 6, committed=True)
    record = as_marker(read_header(batch), Record(6, 1000, b"\0\0\0\1", b""))
    assert record.offset == 6
    assert marker_of(record.value or b"") == Marker(7, 0, commits=True)
    assert marker_of(b"7.0@t-0:1:xxx") is None
