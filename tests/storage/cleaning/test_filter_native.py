"""The loops over batches, compiled and interpreted: both accept and refuse the same input."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.protocol.records import Compression
from quire.protocol.records.batch import read_header, walk_batches
from quire.storage.cleaning import bytes_native, filter_native, key_table_native, offset_map_builder_native, stops
from tests.protocol.records.raw_batches import raw_batch, raw_record
from tests.storage.batches import NOW_MS
from tests.storage.cleaning.compaction import Entry, keyed
from tests.storage.cleaning.conftest import require_compiled
from tests.storage.cleaning.native_loops import interpreted_modules

NONE = array("q")


def table(native: SimpleNamespace, keys: int = 1000) -> Any:
    return native.key_table_native.KeyTable(keys * 2, keys, bytes(16))


def run(
    native: SimpleNamespace, data: bytearray, *, room: int = 1 << 16, stay: array[int] = NONE, now_ms: int = NOW_MS
) -> tuple[tuple[int, int, int], tuple[int, int, int, int], bytes]:
    """Maps and filters all of `data`; returns both results, and the retained bytes."""
    keys = table(native)
    learned = native.offset_map_builder_native.map_batches(keys, data, 0, len(data), 0)
    out = bytearray(room)
    filtered = native.filter_native.filter_batches(
        keys, data, 0, len(data), learned[2], now_ms, now_ms + 1000, stay, out, 0
    )
    return learned, filtered, bytes(out[: filtered[2]])


def log_of(*batches: bytearray) -> bytearray:
    """The batches with consecutive offsets, as in a log."""
    data = bytearray()
    offset = 0
    for batch in batches:
        batch[:8] = offset.to_bytes(8, "big")
        offset += read_header(batch).last_offset_delta + 1
        data += batch
    return data


def test_a_batch_of_which_everything_stays_is_not_changed(native: SimpleNamespace) -> None:
    data = log_of(keyed((b"a", b"1"), (b"b", b"1")), keyed((b"c", b"1")))
    learned, filtered, out = run(native, data)
    assert (learned, filtered) == ((stops.END, len(data), 2), (stops.END, len(data), len(data), 3))
    assert out == data


@pytest.mark.parametrize(
    "special",
    [
        keyed((b"a", b"1"), compression=Compression.GZIP),
        keyed((b"a", b"1"), producer_id=1, sequence=0, transactional=True),
    ],
)
def test_loops_stop_before_a_batch_that_is_not_plain(native: SimpleNamespace, special: bytearray) -> None:
    plain = keyed((b"a", b"1"))
    data = log_of(plain, special)
    learned, filtered, _ = run(native, data)
    assert learned == (stops.SPECIAL, len(plain), 0)
    assert filtered[:2] == (stops.SPECIAL, len(plain))


def test_loops_stop_before_a_batch_that_is_cut_off(native: SimpleNamespace) -> None:
    whole = keyed((b"a", b"1"))
    data = log_of(whole, keyed((b"b", b"1")))
    for cut in range(1, len(data) - len(whole)):
        learned, filtered, out = run(native, data[:-cut])
        assert (learned, filtered[:2]) == ((0, len(whole), 0), (0, len(whole)))
        assert out == data[: len(whole)]


def test_a_flipped_bit_anywhere_behind_the_length_is_found(native: SimpleNamespace) -> None:
    data = log_of(keyed((b"a", b"1"), (b"b", None)))
    for position in range(16, len(data)):
        damaged = data.copy()
        damaged[position] ^= 0x80
        learned, filtered, _ = run(native, damaged)
        expected = (stops.DAMAGED,) if position != 22 else (stops.DAMAGED, stops.SPECIAL)
        assert learned[0] in expected, position
        assert filtered[0] in expected, position


def test_missing_room_in_the_output_is_reported_before_anything_is_written(native: SimpleNamespace) -> None:
    data = log_of(keyed((b"a", bytes(100))), keyed((b"b", bytes(100))))
    half = len(data) // 2
    assert run(native, data, room=half + 16)[1] == (stops.FULL, half, half, 1)
    assert run(native, data, room=half)[1] == (stops.FULL, 0, 0, 0)


def test_broken_records_behind_a_right_checksum_are_damage(native: SimpleNamespace) -> None:
    good = raw_record(0)
    for section, count in (
        (good[:-1], 1),
        (good + b"\0", 1),
        (good, 2),
        (b"\x7f" + good[1:], 1),
        (b"\x02\0", 1),
        (good[:4] + b"\xfe\xff\xff\xff\x0f" + good[5:], 1),
    ):
        data = log_of(raw_batch(section, count, last_offset_delta=count - 1))
        learned, filtered, _ = run(native, data)
        assert filtered[0] == stops.DAMAGED, section
        assert learned[0] == stops.DAMAGED, section


entries: st.SearchStrategy[Entry] = st.tuples(
    st.sampled_from([None, b"", b"a", b"b", b"c" * 20, b"d" * 200]),
    st.one_of(st.none(), st.binary(max_size=5), st.just(bytes(300))),
)


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.tuples(st.lists(entries, min_size=1, max_size=8), st.integers(-5, 2**40)), max_size=8),
    stay=st.lists(st.integers(0, 40), max_size=5),
)
def test_compiled_and_interpreted_write_the_same(batches: list[tuple[list[Entry], int]], stay: list[int]) -> None:
    require_compiled()
    compiled = SimpleNamespace(
        bytes_native=bytes_native,
        key_table_native=key_table_native,
        offset_map_builder_native=offset_map_builder_native,
        filter_native=filter_native,
    )
    data = log_of(*(keyed(*each, timestamp=timestamp) for each, timestamp in batches))
    results = [run(each, data, stay=array("q", sorted(set(stay)))) for each in (compiled, interpreted_modules())]
    assert results[0] == results[1]
    out = results[0][2]
    indexes = [
        each.filter_native.index_batches(out, len(out), 1000, 100, 0, -1, 0)
        for each in (compiled, interpreted_modules())
    ]
    assert indexes[0] == indexes[1]
    assert [header.end for header in walk_batches(out)][-1:] == ([len(out)] if out else [])
