"""The effect of one cleaning on a log."""

import pytest

from quire.protocol.records import Compression
from quire.protocol.records.builder import build_batch
from quire.protocol.records.control import ControlRecordType, build_control_batch
from quire.protocol.records.record import Record
from quire.storage.cleaning.cleanable import Cleanable
from quire.storage.cleaning.cleaning_run import CleaningRun
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, append, marker, open_log, replicate
from tests.storage.cleaning.compaction import COMPACTED, batches_of, compact, compact_once, entries_of, keyed, limits

pytestmark = pytest.mark.usefixtures("native")

EVERY_CODEC = pytest.mark.parametrize("codec", list(Compression))


@EVERY_CODEC
def test_the_last_record_of_each_key_stays_at_its_offset(disk: SimDisk, codec: Compression) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), compression=codec))
    append(log, keyed((b"c", b"1"), (b"b", b"2"), compression=codec))
    log.roll(NOW_MS)
    append(log, keyed((b"a", b"3")))
    assert compact(disk, log) == 5
    assert entries_of(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    assert all(header.compression is codec for header, _ in batches_of(log)[:-1])


def test_offsets_and_epochs_of_a_batch_stay_what_they_were(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), timestamp=NOW_MS + 5), leader_epoch=3)
    log.roll(NOW_MS)
    compact(disk, log)
    ((header, records),) = batches_of(log)
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.record_count) == (0, 2, 3, 2)
    assert [(record.offset, record.timestamp) for record in records] == [(1, NOW_MS + 6), (2, NOW_MS + 7)]
    assert header.max_timestamp == NOW_MS + 7


def test_the_highest_timestamp_is_that_of_what_stays(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), timestamp=NOW_MS + 50), keyed((b"b", b"1"), (b"a", b"2"), (b"b", b"2")))
    log.roll(NOW_MS)
    compact(disk, log)
    assert [header.max_timestamp for header, _ in batches_of(log)] == [NOW_MS + 2]
    assert log.find_max_timestamp() == (NOW_MS + 2, 3, 0)
    assert log.find_timestamp(NOW_MS + 2) == (NOW_MS + 2, 3, 0)
    assert log.find_timestamp(NOW_MS + 3) is None


@EVERY_CODEC
def test_a_tombstone_stays_until_its_delete_horizon(disk: SimDisk, codec: Compression) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", None), compression=codec))
    log.roll(NOW_MS)
    append(log, keyed((b"z", b"1")))
    compact(disk, log, now_ms=NOW_MS + 10)
    (header, records), _ = batches_of(log)
    assert (header.has_delete_horizon, header.base_timestamp) == (True, NOW_MS + 10 + 1000)
    assert [(record.key, record.value, record.timestamp) for record in records] == [
        (b"b", b"1", NOW_MS + 1),
        (b"a", None, NOW_MS + 2),
    ]
    log.roll(NOW_MS)
    compact(disk, log, 3, now_ms=NOW_MS + 1009)
    assert [key for _, key, _ in entries_of(log)] == [b"b", b"a", b"z"], "too early"
    compact(disk, log, 3, now_ms=NOW_MS + 1010)
    assert [key for _, key, _ in entries_of(log)] == [b"b", b"z"]
    assert batches_of(log)[0][0].base_timestamp == NOW_MS + 1010, "the first horizon is the one that counts"


def test_records_without_a_key_go(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((None, b"1"), (b"a", b"1"), (b"", b"1"), (None, None)))
    log.roll(NOW_MS)
    compact(disk, log)
    assert entries_of(log) == [(1, b"a", b"1"), (2, b"", b"1")]


def test_log_append_time_is_kept(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), timestamp_type=1))
    log.roll(NOW_MS)
    before = batches_of(log)[0][0]
    compact(disk, log)
    header, records = batches_of(log)[0]
    assert (header.timestamp_type, header.max_timestamp) == (1, before.max_timestamp)
    assert {record.timestamp for record in records} == {before.max_timestamp}


def test_the_last_batch_of_a_producer_stays_without_records(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), producer_id=7, sequence=0))
    append(log, keyed((b"a", b"2"), (b"b", b"1"), producer_id=7, sequence=1))
    append(log, keyed((b"a", b"3"), (b"b", b"2")))
    log.roll(NOW_MS)
    compact(disk, log)
    (empty, nothing), (_, records) = batches_of(log)
    assert nothing == []
    assert (empty.base_offset, empty.last_offset, empty.producer_id, empty.last_sequence) == (1, 2, 7, 2)
    assert [record.offset for record in records] == [3, 4]
    log.close()
    disk.remove(f"{FOLDER}/00000000000000000005.snapshot")
    reopened = open_log(disk, COMPACTED)
    assert [(each.producer_id, each.last_sequence) for each in reopened.producers()] == [(7, 2)]


def test_the_end_of_what_is_cleaned_is_known_even_if_nothing_is_left_of_it(disk: SimDisk) -> None:
    """Otherwise a reader would wait forever at an offset without a record."""
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1")), keyed((None, b"1")))
    log.roll(NOW_MS)
    compact(disk, log)
    assert [(header.last_offset, header.record_count) for header, _ in batches_of(log)] == [(0, 1), (1, 0)]


def test_records_of_an_aborted_transaction_go_at_once_and_its_marker_later(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1")))
    append(log, keyed((b"a", b"2"), (b"b", b"2"), producer_id=7, sequence=0, transactional=True))
    append(log, keyed((b"c", b"1"), producer_id=7, sequence=2, transactional=True))
    append(log, marker(7, aborts=True))
    append(log, keyed((b"d", b"1"), producer_id=7, sequence=3))
    log.roll(NOW_MS)
    append(log, keyed((b"z", b"1")))
    compact(disk, log)
    kinds = [(header.base_offset, header.is_control, header.record_count) for header, _ in batches_of(log)]
    assert kinds == [(0, False, 1), (4, True, 1), (5, False, 1), (6, False, 1)]
    assert [each.last_offset for each in log.segments[0].transaction_index] == [4], "its batches were there just now"
    log.roll(NOW_MS)
    compact(disk, log, 6)
    header = batches_of(log)[1][0]
    assert (header.is_control, header.has_delete_horizon, header.base_timestamp) == (True, True, NOW_MS + 1000)
    assert list(log.segments[0].transaction_index) == []
    compact(disk, log, 6, now_ms=NOW_MS + 1000)
    assert [header.base_offset for header, _ in batches_of(log)] == [0, 5, 6]


def test_aborted_transactions_are_read_in_the_job(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    for producer_id in (7, 8):
        append(log, keyed((b"a", b"1"), producer_id=producer_id, sequence=0, transactional=True))
        append(log, marker(producer_id, aborts=True))
        log.roll(NOW_MS)
    log.close()
    log = open_log(disk, COMPACTED, clean=True)
    for segment in log.segments:
        segment.transaction_index.unload()
    disk.fail_when(lambda operation: operation.kind == "read" and operation.path.endswith(".txnindex"))
    run = CleaningRun(log, Cleanable(0, 4, 0, 1, False), limits(), bytes(16), NOW_MS)
    with pytest.raises(OSError, match="error"):
        run.read_aborted(disk)
    assert [(each.producer_id, each.last_offset) for each in run.read_aborted(disk)] == [(7, 1), (8, 3)]


def test_the_marker_of_a_commit_stays_with_the_records_it_commits(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), producer_id=7, sequence=0, transactional=True), marker(7, aborts=False))
    append(log, keyed((b"b", b"1"), producer_id=7, sequence=1, transactional=True), marker(7, aborts=False))
    append(log, keyed((b"a", b"2")))
    log.roll(NOW_MS)
    compact(disk, log)
    compact(disk, log)
    compact(disk, log, now_ms=NOW_MS + 5000)
    assert [(header.base_offset, header.is_control) for header, _ in batches_of(log)] == [
        (2, False),
        (3, True),
        (4, False),
    ]


def test_the_marker_that_is_all_that_is_left_of_a_producer_stays(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), producer_id=7, sequence=0, transactional=True))
    append(log, marker(7, aborts=False, producer_epoch=1))
    append(log, keyed((b"a", b"2")))
    log.roll(NOW_MS)
    for passed_ms in (0, 0, 2000, 4000):
        compact(disk, log, now_ms=NOW_MS + passed_ms)
    assert [(header.producer_id, header.producer_epoch) for header, _ in batches_of(log)] == [(7, 1), (-1, -1)]


def test_other_control_batches_stay(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, build_control_batch([(ControlRecordType.LEADER_CHANGE, b"")], NOW_MS), keyed((b"b", b"1")))
    log.roll(NOW_MS)
    for passed_ms in (0, 2000, 4000):
        compact(disk, log, now_ms=NOW_MS + passed_ms)
    assert [header.is_control for header, _ in batches_of(log)] == [True, False]


def test_small_neighbours_become_one_segment(disk: SimDisk) -> None:
    config = COMPACTED._replace(segment_bytes=2000, index_interval_bytes=100)
    log = open_log(disk, config)
    for number in range(40):
        append(log, keyed((b"key %d" % (number % 5), bytes(100))))
        if number % 8 == 7:
            log.roll(NOW_MS)
    compact(disk, log)
    assert len(log.segments) == 6, "what is in them now decides, and no two fit into one"
    compact(disk, log)
    assert [segment.base_offset for segment in log.segments] == [0, 40]
    assert [offset for offset, _, _ in entries_of(log)] == [35, 36, 37, 38, 39]
    assert disk.list_dir(FOLDER) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000040.log",
        "00000000000000000040.snapshot",
    ]


def test_segments_without_timestamps_keep_their_age(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED._replace(delete=True, retention_ms=1000))
    for now_ms in (NOW_MS, NOW_MS + 5):
        disk.now_ms = lambda now_ms=now_ms: now_ms  # type: ignore[misc]
        append(log, build_batch([Record(0, -1, b"a", b"1"), Record(0, -1, b"b", b"1")]))
        log.roll(now_ms)
    disk.now_ms = lambda: NOW_MS + 900
    compact(disk, log)
    assert [segment.newest_ms() for segment in log.segments] == [NOW_MS + 5, NOW_MS + 5]
    assert log.find_expired(log.end_offset, NOW_MS + 1005) is None
    assert log.find_expired(log.end_offset, NOW_MS + 1006) is not None


def test_keys_that_do_not_fit_into_memory_are_cleaned_in_several_rounds(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    for number in range(60):
        append(log, keyed(*((b"%d" % (key % 37), b"%d" % number) for key in range(number, number + 3))))
    log.roll(NOW_MS)
    expected = {key: offset for offset, key, _ in entries_of(log)}
    small = limits(table_bytes=24 * 8, load_factor=0.9)
    rounds = 0
    end = 0
    while end < 180:
        end = compact_once(disk, log, end, using=small)
        rounds += 1
    assert rounds > 10
    assert {key: offset for offset, key, _ in entries_of(log)} == expected
    assert len(entries_of(log)) == len(expected)


def test_a_batch_that_is_larger_than_the_buffer_is_cleaned_too(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1")), keyed((b"a", bytes(5000)), (b"b", None), (b"c", bytes(3000))))
    append(log, keyed((b"a", bytes(7000)), compression=Compression.ZSTD))
    log.roll(NOW_MS)
    compact(disk, log, using=limits(buffer_bytes=128))
    assert [offset for offset, _, _ in entries_of(log)] == [2, 3, 4]


def test_records_before_the_dirty_part_are_removed_if_later_values_exist(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1"), (b"b", b"1")))
    log.roll(NOW_MS)
    append(log, keyed((b"a", b"2")))
    log.roll(NOW_MS)
    compact(disk, log, 2)
    assert entries_of(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_readers_over_gaps_find_what_is_next(disk: SimDisk) -> None:
    config = COMPACTED._replace(segment_bytes=400, index_interval_bytes=1)
    log = open_log(disk, config)
    for number in range(30):
        append(log, keyed((b"key %d" % (number % 3), bytes(60)), timestamp=NOW_MS + number))
        log.roll(NOW_MS)
    compact(disk, log)
    for offset in range(30):
        part = log.read(offset, 1)
        assert part is not None
        expected = max(offset, 27)
        assert int.from_bytes(part.read()[:8], "big") == expected
        assert log.position_of(offset).offset == offset
        assert log.find_timestamp(NOW_MS + offset) == (NOW_MS + expected, expected, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_a_compacted_log_is_opened_as_it_was(disk: SimDisk, clean: bool) -> None:
    config = COMPACTED._replace(segment_bytes=1000, index_interval_bytes=1)
    log = open_log(disk, config)
    for number in range(50):
        append(log, keyed((b"key %d" % (number % 7), b"%d" % number)))
    log.roll(NOW_MS)
    compact(disk, log)
    before = [(header.base_offset, [record.offset for record in records]) for header, records in batches_of(log)]
    indexes = {name: disk.read_file(f"{FOLDER}/{name}") for name in disk.list_dir(FOLDER) if name.endswith("index")}
    log.close()
    again = open_log(disk, config, clean=clean, foreign=True)
    after = [(header.base_offset, [record.offset for record in records]) for header, records in batches_of(again)]
    assert after == before
    assert again.end_offset == 50
    again.close()
    rebuilt = {name: disk.read_file(f"{FOLDER}/{name}") for name in disk.list_dir(FOLDER) if name.endswith("index")}
    assert {name: rebuilt[name] for name in indexes} == indexes, "as recovery would make them"


def test_a_replicated_log_with_gaps_is_compacted(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    for offset in (3, 10, 12):
        data = keyed((b"a", b"%d" % offset))
        data[:8] = offset.to_bytes(8, "big")
        data[12:16] = bytes(4)
        replicate(log, data)
    log.roll(NOW_MS)
    assert compact(disk, log) == 13
    assert [offset for offset, _, _ in entries_of(log)] == [12]


def test_commits_of_a_producer_count_although_it_aborted_something_in_the_clean_part(disk: SimDisk) -> None:
    """Otherwise its tombstone would be removed later, and the deleted value would reappear."""
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1")))
    append(log, keyed((b"b", b"1"), producer_id=7, sequence=0, transactional=True), marker(7, aborts=True))
    log.roll(NOW_MS)
    assert compact(disk, log) == 3
    append(log, keyed((b"a", None), producer_id=7, sequence=1, transactional=True), marker(7, aborts=False))
    append(log, keyed((b"z", b"1")))
    log.roll(NOW_MS)
    compact(disk, log, 3)
    assert entries_of(log) == [(3, b"a", None), (5, b"z", b"1")]
    for passed_ms in (1000, 3000):
        append(log, keyed((b"z", b"1")))
        log.roll(NOW_MS)
        compact(disk, log, log.end_offset - 1, now_ms=NOW_MS + passed_ms)
    assert [key for _, key, _ in entries_of(log)] == [b"z"]
