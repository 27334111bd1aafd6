import pytest

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER

PATH = f"{FOLDER}/{100:020d}.txnindex"
ABORTED = [
    AbortedTransaction(1, 90, 110, 100),
    AbortedTransaction(2, 100, 120, 115),
    AbortedTransaction(3, 115, 130, 131),
    AbortedTransaction(1, 140, 150, 151),
]


def index_of(disk: SimDisk) -> TransactionIndex:
    return TransactionIndex(disk, PATH, 100, IndexCache())


def filled(disk: SimDisk) -> TransactionIndex:
    index = index_of(disk)
    index.reset()
    for aborted in ABORTED:
        index.append(aborted)
    return index


def written(disk: SimDisk, content: bytes) -> TransactionIndex:
    disk.open(PATH, create=True).pwritev([content], 0)
    return index_of(disk)


def test_an_entry_has_the_bytes_that_kafka_gives_it(disk: SimDisk) -> None:
    index = index_of(disk)
    index.reset()
    index.append(AbortedTransaction(producer_id=7, first_offset=101, last_offset=258, last_stable_offset=259))
    index.write()
    assert disk.read_file(PATH).hex(" ", 8) == (
        # From the end: 8 bytes each of last stable offset, last offset, first offset, producer id; then the version.
        "0000 0000000000000007 0000000000000065 0000000000000102 0000000000000103"
    )


def test_an_empty_index_has_no_file_and_a_missing_file_is_an_empty_index(disk: SimDisk) -> None:
    index = index_of(disk)
    assert not index.is_known_empty, "it has not been read yet"
    assert list(index) == []
    assert index.is_known_empty
    index.write()
    assert not disk.exists(PATH)


def test_an_index_that_became_empty_leaves_no_file(disk: SimDisk) -> None:
    index = filled(disk)
    index.write()
    assert index.truncate_to(100)
    index.write()
    assert not disk.exists(PATH)


def test_written_entries_are_read_back(disk: SimDisk) -> None:
    filled(disk).write()
    assert list(index_of(disk)) == ABORTED


@pytest.mark.parametrize(
    ("offset", "upper_offset", "found", "complete"),
    [
        (100, 105, ABORTED[:2], True),
        (105, 116, ABORTED[:3], True),
        (111, 116, ABORTED[1:3], True),
        (121, 131, ABORTED[2:3], True),
        (121, 140, ABORTED[2:3], True),
        (121, 200, ABORTED[2:], False),
        (131, 140, [], True),
        (151, 200, [], False),
    ],
)
def test_transactions_that_overlap_a_range_are_found_and_whether_there_may_be_more(
    disk: SimDisk, offset: int, upper_offset: int, found: list[AbortedTransaction], complete: bool
) -> None:
    assert filled(disk).overlapping(offset, upper_offset) == (found, complete)


def test_truncation_drops_transactions_aborted_by_a_truncated_marker(disk: SimDisk) -> None:
    index = filled(disk)
    assert not index.truncate_to(151)
    assert index.truncate_to(130)
    assert list(index) == ABORTED[:2]


def test_impossible_entries_are_refused(disk: SimDisk) -> None:
    filled(disk).check(151)
    for end_offset in (150, 101):
        with pytest.raises(CorruptIndexError, match="wrong entry"):
            filled(disk).check(end_offset)
    for wrong in (
        AbortedTransaction(-1, 160, 170, 171),
        AbortedTransaction(1, 160, 160, 161),
        AbortedTransaction(1, -1, 170, 171),
        AbortedTransaction(1, 160, 170, 172),
        AbortedTransaction(1, 140, 150, 151),
    ):
        index = filled(disk)
        index.append(wrong)
        with pytest.raises(CorruptIndexError, match="position 136"):
            index.check(1000)
    with pytest.raises(CorruptIndexError, match="multiple"):
        written(disk, bytes(35)).check(1000)


def test_another_version_is_refused(disk: SimDisk) -> None:
    index = filled(disk)
    index.entries[1] = 1
    with pytest.raises(CorruptIndexError, match="position 0"):
        index.check(1000)
