"""One batch written down byte by byte from the format's description, read and built."""

import pytest

from quire.protocol.records import Record, build_batch, read_header, read_records

pytestmark = pytest.mark.usefixtures("native")

GOLDEN = bytes.fromhex(
    "0000000000000007"  # base offset 7
    "00000045"  # length: 81 bytes minus the 12 up to here
    "00000003"  # leader epoch
    "02"  # magic
    "101dd5bd"  # CRC-32C of what follows
    "0010"  # attributes: no compression, CreateTime, transactional
    "00000001"  # last offset delta
    "0000018bcfe56800"  # base timestamp 1_700_000_000_000
    "0000018bcfe5692c"  # max timestamp, 300 ms later
    "00000000000003e8"  # producer id 1000
    "0002"  # producer epoch
    "00000029"  # base sequence 41
    "00000002"  # two records
    # 11 bytes; attributes, timestamp +0, offset +0, key "k", value "v", one header: "h", null
    "16" + "00" + "00" + "00" + "026b" + "0276" + "02" + "0268" + "01"
    # 7 bytes; attributes, timestamp +300, offset +1, null key, empty value, no headers
    "0e" + "00" + "d804" + "02" + "01" + "00" + "00"
)
RECORDS = [
    Record(7, 1_700_000_000_000, b"k", b"v", [("h", None)]),
    Record(8, 1_700_000_000_300, None, b"", []),
]


def bitwise_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_header_is_read_as_written_down() -> None:
    header = read_header(GOLDEN)
    assert (header.base_offset, header.length, header.size, header.leader_epoch, header.magic) == (7, 69, 81, 3, 2)
    assert (header.last_offset_delta, header.last_offset, header.next_offset) == (1, 8, 9)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_300)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1000, 2, 41)
    assert (header.last_sequence, header.record_count, header.attributes) == (42, 2, 0x10)
    assert header.crc == bitwise_crc32c(GOLDEN[21:])


def test_records_are_read_as_written_down() -> None:
    assert read_records(GOLDEN) == RECORDS


def test_builder_writes_the_same_bytes() -> None:
    built = build_batch(
        RECORDS, base_offset=7, leader_epoch=3, producer_id=1000, producer_epoch=2, base_sequence=41, transactional=True
    )
    assert built.hex() == GOLDEN.hex()
