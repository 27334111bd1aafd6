"""The table of last offsets, compiled and interpreted."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.records.raw_batches import raw_record
from tests.storage.cleaning.native_loops import interpreted_modules


def table(native: SimpleNamespace, slots: int, limit: int, seed: bytes = bytes(range(16))) -> Any:
    return native.key_table_native.KeyTable(slots, limit, seed)


def learn(native: SimpleNamespace, table: Any, *keys: bytes, base_offset: int = 0) -> tuple[int, int]:
    section = b"".join(raw_record(index, key) for index, key in enumerate(keys))
    found: tuple[int, int] = native.offset_map_builder_native.map_records(table, section, len(keys), base_offset, 0)
    return found


def test_the_last_offset_of_a_key_is_known(native: SimpleNamespace) -> None:
    keys = table(native, 16, 8)
    learn(native, keys, b"a", b"b", b"a", b"", base_offset=100)
    assert [keys.offset_of(key) for key in (b"a", b"b", b"", b"c")] == [102, 101, 103, -1]
    assert keys.count == 3


def test_a_full_table_accepts_no_new_keys_but_newer_offsets(native: SimpleNamespace) -> None:
    keys = table(native, 4, 3)
    assert learn(native, keys, b"a", b"b", b"c", b"a", b"d", b"e") == (2, 3)
    assert learn(native, keys, b"b", base_offset=50) == (0, 50)
    assert [keys.offset_of(key) for key in (b"a", b"b", b"c", b"d")] == [3, 50, 2, -1]


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        # From the reference implementation of SipHash-2-4 with 128 bits: key and message are 0, 1, 2 and so on.
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
def test_digests_are_siphash(size: int, digest: str) -> None:
    first, second = interpreted_modules().key_table_native._digest(
        bytes(range(size)),
        0,
        size,
        int.from_bytes(bytes(range(8)), "little"),
        int.from_bytes(bytes(range(8, 16)), "little"),
    )
    found = (first.to_bytes(8, "little") + second.to_bytes(8, "little")).hex()
    assert found == digest


@settings(max_examples=50, deadline=None)
@given(keys=st.lists(st.binary(max_size=40), max_size=60), seed=st.binary(min_size=16, max_size=16))
def test_a_table_is_a_dictionary(native: SimpleNamespace, keys: list[bytes], seed: bytes) -> None:
    known = table(native, 90, 60, seed)
    learn(native, known, *keys)
    expected = {key: offset for offset, key in enumerate(keys)}
    assert {key: known.offset_of(key) for key in keys} == expected
    assert known.count == len(expected)
