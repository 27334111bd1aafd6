"""How large the table of keys is."""

import pytest

from quire.storage.cleaning.offset_map import SLOT_BYTES, make_table


@pytest.mark.parametrize(
    ("keys", "limit_bytes", "room"),
    [
        (1000, 1 << 20, 1000),
        (0, 1 << 20, 1),
        (10_000_000, SLOT_BYTES * 1000, 900),
        (1000, SLOT_BYTES * 1000, 900),
        (740, SLOT_BYTES * 1000, 740),
        (1000, 1, 1),
    ],
)
def test_a_table_has_room_for_the_keys_or_for_what_memory_allows(keys: int, limit_bytes: int, room: int) -> None:
    assert make_table(keys, limit_bytes, 0.9, bytes(16)).limit == room


def test_a_table_is_never_filled_to_the_last_slot() -> None:
    assert make_table(100, SLOT_BYTES * 10, 1.0, bytes(16)).limit == 9
    assert make_table(100, SLOT_BYTES * 10, 0.0, bytes(16)).limit == 1
