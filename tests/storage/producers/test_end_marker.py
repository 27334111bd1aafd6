import pytest

from quire.protocol.records.batch import read_header
from quire.protocol.records.builder import build_batch
from quire.protocol.records.control import ControlRecordType, build_control_batch
from quire.protocol.records.record import Record
from quire.storage.producers.end_marker import EndMarker, build_end_marker, is_end_marker, read_end_marker
from tests.storage.batches import NOW_MS, batch, header, marker


@pytest.mark.parametrize("aborts", [True, False])
def test_a_marker_has_the_result_of_the_transaction_and_its_coordinator_epoch(aborts: bool) -> None:
    data = batch(b"before") + marker(5, aborts=aborts)
    end = read_header(data, len(batch(b"before")))
    assert is_end_marker(end)
    assert read_end_marker(data, end) == EndMarker(aborts, coordinator_epoch=3)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_the_control_batch_that_the_format_asks_for(committed: bool) -> None:
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    value = b"\0\0" + (7).to_bytes(4, "big")
    assert build_end_marker(5, 3, committed=committed, coordinator_epoch=7, timestamp=NOW_MS) == build_control_batch(
        [(kind, value)], NOW_MS, producer_id=5, producer_epoch=3
    )


def test_a_marker_that_was_written_in_another_way_says_the_same() -> None:
    record = Record(0, NOW_MS, b"\0\0\0\x01", b"\0\0\0\0\0\x07", [("by", b"another")])
    data = build_batch([record], producer_id=5, producer_epoch=0, transactional=True, control=True)
    assert read_end_marker(data, header(data)) == EndMarker(aborts=False, coordinator_epoch=7)


def test_a_batch_of_the_same_length_with_other_content_is_not_a_marker() -> None:
    record = Record(0, NOW_MS, b"\0\0\0\x02", b"\0\0\0\0\0\x07")
    data = build_batch([record], producer_id=5, producer_epoch=0, transactional=True, control=True)
    assert read_end_marker(data, header(data)) is None


def test_other_batches_are_no_markers() -> None:
    assert not is_end_marker(header(batch(producer_id=5, transactional=True)))
    leader_change = build_control_batch([(ControlRecordType.LEADER_CHANGE, b"")], NOW_MS)
    assert not is_end_marker(header(leader_change))


def test_a_control_batch_that_says_nothing_we_know_ends_no_transaction() -> None:
    for key in (b"", b"\0\0\0\x09", b"\0"):
        record = Record(0, NOW_MS, key, b"")
        data = build_batch([record], producer_id=5, producer_epoch=0, transactional=True, control=True)
        assert read_end_marker(data, header(data)) is None


def test_a_marker_without_a_value_has_an_unknown_coordinator() -> None:
    data = build_control_batch([(ControlRecordType.ABORT, b"")], NOW_MS, producer_id=5, producer_epoch=0)
    assert read_end_marker(data, header(data)) == EndMarker(aborts=True, coordinator_epoch=-1)
