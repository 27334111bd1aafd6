"""Record batches with wrong sizes, record counts, codecs or decompressed contents."""

import gzip
import os
import random
import secrets
import time

import cramjam
import lz4.frame
import pytest
import zstandard

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.produce import ProduceResponse
from tests.fuzz.generate import damaged
from tests.fuzz.victim import Victim
from tests.wire.batches import batch, record
from tests.wire.raw import fetch, list_offset, produce, produce_request, records_of

MEGABYTE = 1 << 20
TWO = [b"a", b"b"]
SECONDS = float(os.environ.get("QUIRE_FUZZ_SECONDS", "8")) / 2
TOPICS = {
    "plain": {},
    "rewritten": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    "compacted": {"cleanup.policy": "compact"},
}
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
SIXTEEN_MEGABYTES = bytes(16 * MEGABYTE)
INVALID, CORRUPT, TOO_LARGE = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE
NO_CODEC = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
BOMBS = {
    "gzip": (batch(attributes=GZIP, records=gzip.compress(SIXTEEN_MEGABYTES) * 32), TOO_LARGE),
    "lz4": (
        batch(attributes=LZ4, records=lz4.frame.compress(SIXTEEN_MEGABYTES, block_linked=False) * 10),
        TOO_LARGE,
    ),
    "zstd": (batch(attributes=ZSTD, records=zstandard.ZstdCompressor(19).compress(SIXTEEN_MEGABYTES) * 64), TOO_LARGE),
    "zstd that tells": (
        batch(attributes=ZSTD, records=zstandard.ZstdCompressor().compress(bytes(512 * MEGABYTE))),
        TOO_LARGE,
    ),
    "snappy that tells": (
        batch(attributes=SNAPPY, records=b"\xff\xff\xff\xff\x07" + b"\xfe\x01\x00" * 1000),
        CORRUPT,
    ),
    "snappy": (batch(attributes=SNAPPY, records=bytes(cramjam.snappy.compress_raw(bytes(18 * MEGABYTE)))), INVALID),
}
REFUSED = {
    "offsets fall": (batch(TWO, records=record(b"a", 1) + record(b"b", 0)), INVALID),
    "offsets repeat": (batch(TWO, records=record(b"a", 0) + record(b"b", 0)), INVALID),
    "offsets leave the batch": (batch(TWO, records=record(b"a", 0) + record(b"b", 70)), INVALID),
    "offsets fall, compressed": (
        batch(TWO, attributes=1, records=gzip.compress(record(b"a", 1) + record(b"b", 0))),
        INVALID,
    ),
    "unknown codec 5": (batch(attributes=5), NO_CODEC),
    "unknown codec 7": (batch(attributes=7), NO_CODEC),
    "a record larger than the batch": (batch(records=b"\xfe\xff\xff\xff\x0f" + b"x" * 20), INVALID),
    "a key larger than the record": (batch(records=b"\x14\0\0\0\xfe\xff\x07" + b"x" * 7), INVALID),
    "more headers than bytes": (batch(records=b"\x10\0\0\0\1\1\xfe\xff\x07"), INVALID),
    "two thousand million records": (batch(record_count=2**31 - 1, last_offset_delta=2**31 - 2), INVALID),
    "an offset past the largest": (batch(base_offset=2**63 - 1), INVALID),
}


@pytest.fixture(scope="module")
def topics(victim: Victim) -> list[str]:
    wanted = [
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in TOPICS.items()
    ]
    with victim.connect() as connection:
        made = connection.call(CreateTopicsRequest(topics=wanted), 7, CreateTopicsResponse).topics
    assert [topic.error_code for topic in made] == [0, 0, 0]
    return list(TOPICS)


def assert_readable(victim: Victim, topic: str) -> None:
    """Everything in the topic can be fetched, and every batch is valid."""
    from quire.protocol.records import read_records

    with victim.connect() as connection:
        offset, end = 0, list_offset(connection, topic, -1).offset
        while offset < end:
            found = fetch(connection, topic, offset)
            assert found.error_code == ErrorCode.NONE
            records = records_of(found)
            length = 12 + int.from_bytes(records[8:12], "big")
            offset = read_records(records[:length])[-1].offset + 1


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("case", REFUSED)
def test_a_batch_with_false_fields_is_refused(victim: Victim, topics: list[str], topic: str, case: str) -> None:
    records, code = REFUSED[case]
    with victim.connect() as connection:
        end = list_offset(connection, topic, -1).offset
        assert produce(connection, topic, records).error_code == code
        assert list_offset(connection, topic, -1).offset == end
    assert len(victim.assert_unharmed()) <= 1


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_decompression_bomb_is_refused(victim: Victim, topics: list[str], topic: str, bomb: str) -> None:
    """Half a megabyte that expands to half a gigabyte is refused, and is never held in memory."""
    records, code = BOMBS[bomb]
    assert len(records) < 1_048_588
    before = victim.resident_bytes
    with victim.connect() as connection:
        assert produce(connection, topic, records).error_code == code
    assert len(victim.assert_unharmed()) <= 1
    assert victim.resident_bytes - before < 150 * MEGABYTE


def test_an_oversized_batch_is_too_large(victim: Victim, topics: list[str]) -> None:
    with victim.connect() as connection:
        answer = produce(connection, "plain", batch([bytes(2 * MEGABYTE)]))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert len(victim.assert_unharmed()) <= 1


def test_damaged_batches_with_a_right_checksum_leave_only_sound_ones(victim: Victim, topics: list[str]) -> None:
    seed = int(os.environ.get("QUIRE_FUZZ_SEED", secrets.randbits(32)))
    print(f"QUIRE_FUZZ_SEED={seed}")
    rng = random.Random(seed)
    deadline = time.monotonic() + SECONDS
    with victim.connect() as connection:
        while time.monotonic() < deadline:
            topic = rng.choice(topics)
            values = [rng.randbytes(rng.randrange(100)) for _ in range(rng.randrange(1, 5))]
            records = b"".join(record(value, n, key=b"k") for n, value in enumerate(values))
            codec = rng.choice([0, 0, GZIP, LZ4, ZSTD])
            if rng.random() < 0.5:
                records = damaged(rng, records)
            packed = {GZIP: gzip.compress, LZ4: lz4.frame.compress, ZSTD: zstandard.compress}.get(codec, bytes)(records)
            data = batch(values, records=damaged(rng, packed) if rng.random() < 0.3 else packed, attributes=codec)
            answer = connection.call(produce_request(topic, data), 12, ProduceResponse)
            code = answer.responses[0].partition_responses[0].error_code
            assert code != ErrorCode.UNKNOWN_SERVER_ERROR, data.hex()
            victim.assert_unharmed()
    for topic in topics:
        assert_readable(victim, topic)
