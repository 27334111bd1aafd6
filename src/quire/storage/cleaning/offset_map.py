"""How much memory the offset map of a cleaning run takes, and how many keys fit into it.

The map contains the last offset of each key in the dirty part of a log. It is as large as the dirty part can need, up
to the configured limit. If the keys do not fit, several runs clean the log, each with the next keys.
"""

from quire.storage.cleaning.key_table_native import KeyTable

SLOT_BYTES = 24
_SPARE = 4 / 3
"""Slots per key if memory allows: the emptier a table is, the shorter its searches."""


def make_table(keys_max: int, limit_bytes: int, load_factor: float, seed: bytes) -> KeyTable:
    """A table for `keys_max` keys, or for as many as fit into `limit_bytes` at `load_factor`."""
    slots_max = max(limit_bytes // SLOT_BYTES, 2)
    slots = int(keys_max * _SPARE) + 2
    if slots <= slots_max:
        return KeyTable(slots, max(keys_max, 1), seed)
    return KeyTable(slots_max, min(max(int(slots_max * load_factor), 1), slots_max - 1), seed)
