from collections.abc import Sequence

import pytest

from quire.cli.storage.dump.facts import Fact
from quire.cli.storage.dump.indexes import dump_offset_index, dump_time_index, dump_transaction_index
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import TimeIndex
from tests.cli.storage.dump.memory_file import MemoryFile
from tests.storage.batches import batch

BASE = 100
TIMES = [50, 40, 70, 60]
LOG = b"".join(bytes(batch(b"v", base_offset=BASE + at, timestamp=time)) for at, time in enumerate(TIMES))
SIZE = len(LOG) // len(TIMES)


def offset_index(*entries: tuple[int, int], tail: bytes = b"", log: bytes | None = LOG) -> list[Fact]:
    content = b"".join(OffsetIndex.ENTRY.pack(*entry) for entry in entries) + tail
    return list(dump_offset_index(MemoryFile(content), BASE, None if log is None else MemoryFile(log)))


def time_index(*entries: tuple[int, int], tail: bytes = b"", log: bytes | None = LOG) -> list[Fact]:
    content = b"".join(TimeIndex.ENTRY.pack(*entry) for entry in entries) + tail
    return list(dump_time_index(MemoryFile(content), BASE, None if log is None else MemoryFile(log)))


def problems(facts: Sequence[Fact]) -> list[object]:
    return [fact.fields["position"] for fact in facts if fact.kind == "problem"]


def test_entries_that_lead_to_their_batches_are_right() -> None:
    facts = offset_index((1, SIZE), (3, 3 * SIZE))
    assert facts == [
        Fact("index_entry", {"offset": 101, "position": SIZE}),
        Fact("index_entry", {"offset": 103, "position": 3 * SIZE}),
        Fact("index_end", {"entries": 2, "unused_entries": 0, "compared_with_log": True}),
    ]


@pytest.mark.parametrize(
    "entry", [(1, SIZE - 1), (1, len(LOG)), (1, -1), (1, 2 * SIZE)], ids=["inside", "behind", "before", "later batch"]
)
def test_an_entry_that_leads_elsewhere_is_a_problem(entry: tuple[int, int]) -> None:
    assert problems(offset_index(entry, (3, 3 * SIZE))) == [0]
    assert problems(offset_index(entry, (3, 3 * SIZE), log=None)) == []


def test_an_entry_for_an_append_of_several_batches_leads_to_the_first() -> None:
    assert problems(offset_index((2, SIZE))) == []


def test_offsets_that_do_not_rise_are_a_problem() -> None:
    assert problems(offset_index((3, SIZE), (3, SIZE))) == [8]


def test_room_that_is_not_used_yet_is_counted_and_no_problem() -> None:
    facts = offset_index((1, SIZE), tail=bytes(8 * 100_000))
    assert problems(facts) == []
    assert facts[-1].fields["unused_entries"] == 100_000
    assert time_index((50, 0), tail=bytes(12 * 5))[-1].fields["unused_entries"] == 5
    assert offset_index(tail=bytes(80))[-1].fields == {"entries": 0, "unused_entries": 10, "compared_with_log": True}


def test_something_behind_unused_room_is_a_problem() -> None:
    assert problems(offset_index((1, SIZE), tail=bytes(8 * 100_000) + b"\x00\x00\x00\x01\x00\x00\x00\x00")) == [800_011]


def test_half_an_entry_is_a_problem() -> None:
    assert problems(offset_index((1, SIZE), tail=b"\x01")) == [8]
    assert problems(time_index((50, 0), tail=b"\x01" * 11)) == [12]


def test_an_index_longer_than_a_chunk_is_read_to_its_end() -> None:
    facts = offset_index(*((at + 1, at) for at in range(20_000)), log=None)
    assert facts[-1].fields["entries"] == 20_000
    assert problems(facts) == []


def test_a_time_index_has_the_highest_timestamp_so_far() -> None:
    facts = time_index((50, 0), (70, 2))
    assert problems(facts) == []
    assert facts[:2] == [
        Fact("time_index_entry", {"timestamp": 50, "offset": 100}),
        Fact("time_index_entry", {"timestamp": 70, "offset": 102}),
    ]


@pytest.mark.parametrize("entry", [(60, 1), (40, 1), (60, 3)])
def test_any_other_timestamp_is_a_problem(entry: tuple[int, int]) -> None:
    assert problems(time_index(entry)) == [0]


def test_timestamps_that_do_not_rise_are_a_problem() -> None:
    assert problems(time_index((50, 0), (50, 1))) == [12]


def aborted(*entries: tuple[int, int, int, int, int]) -> list[Fact]:
    content = b"".join(
        version.to_bytes(2, "big") + b"".join(number.to_bytes(8, "big", signed=True) for number in rest)
        for version, *rest in entries
    )
    return list(dump_transaction_index(MemoryFile(content)))


def test_aborted_transactions() -> None:
    facts = aborted((0, 5, 10, 20, 15), (0, 6, 15, 30, 31))
    assert problems(facts) == []
    assert facts[0].fields == {"producer_id": 5, "first_offset": 10, "last_offset": 20, "last_stable_offset": 15}
    assert facts[-1].fields["entries"] == 2


def test_aborted_transactions_that_cannot_be_are_problems() -> None:
    assert problems(aborted((1, 5, 10, 20, 15))) == [0]
    assert problems(aborted((0, 5, 21, 20, 15))) == [0]
    assert problems(aborted((0, 5, 10, 20, 15), (0, 6, 5, 20, 21))) == [34]
