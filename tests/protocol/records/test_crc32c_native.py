"""CRC-32C in compiled loops, with the processor's instruction and with tables."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.records import crc32c_native
from quire.protocol.records.checksum import crc32c
from tests.protocol.records.native_modules import interpreted

WAYS = pytest.mark.parametrize(
    "native", [crc32c_native, interpreted("records/crc32c_native.py")], ids=["installed", "interpreted"]
)
STRETCHES_BYTES = 3 * 1024
"""The size that is processed at once: three ranges in parallel."""


@WAYS
def test_checksum_is_crc32c(native: ModuleType) -> None:
    for data, checksum in ((b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)):
        assert native.crc32c_of(data) == native.crc32c_by_tables(data) == checksum


@WAYS
@pytest.mark.parametrize("size", [*range(STRETCHES_BYTES - 9, STRETCHES_BYTES + 10), 2 * STRETCHES_BYTES, 20_001])
def test_longer_ones_are_put_together_from_stretches(native: ModuleType, size: int) -> None:
    data = bytes(at * at % 251 for at in range(size))
    assert native.crc32c_of(data) == native.crc32c_by_tables(data) == crc32c(data)


@WAYS
@given(data=st.binary(max_size=200), repeated=st.integers(1, 60))
def test_all_ways_agree(native: ModuleType, data: bytes, repeated: int) -> None:
    data = data * repeated
    assert native.crc32c_of(data) == native.crc32c_by_tables(data) == crc32c(data)
