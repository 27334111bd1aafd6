import pytest

from quire.cli.storage.dump.batches import dump_log, dump_metadata_snapshot
from quire.cli.storage.dump.contents import decoder_of
from quire.cli.storage.dump.facts import Fact
from quire.cli.storage.dump.folders import Contents
from quire.cli.storage.dump.wanted import Wanted
from quire.protocol.codec import encode
from quire.protocol.messages.control_records import EndTxnMarker
from quire.protocol.messages.metadata_records import TopicRecord
from quire.protocol.records import Compression, ControlRecordType, Record, build_batch, build_control_batch
from quire.protocol.records.batch import DELETE_HORIZON_BIT, compute_crc, read_header
from quire.raft.snapshot_file import encode_snapshot
from tests.cli.storage.dump.memory_file import MemoryFile

PLAIN = decoder_of(Contents.PLAIN)
RECORDS = Wanted(records=True)
TIME = 1_700_000_000_000


def batch(base_offset: int, *values: bytes, compression: Compression = Compression.NONE) -> bytes:
    records = [Record(0, TIME + at, b"k%d" % at, value) for at, value in enumerate(values)]
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=3, compression=compression, producer_id=-1))


def dump(content: bytes, wanted: Wanted = RECORDS, base_offset: int = 0) -> list[Fact]:
    return list(dump_log(MemoryFile(content), PLAIN, wanted, base_offset))


def of_kind(kind: str, facts: list[Fact]) -> list[dict[str, object]]:
    return [fact.fields for fact in facts if fact.kind == kind]


@pytest.mark.parametrize("codec", list(Compression))
def test_records_are_printed_below_their_batch_for_every_codec(codec: Compression) -> None:
    content = batch(10, b"a", b"b", compression=codec) + batch(12, b"c", compression=codec)
    facts = dump(content, base_offset=10)
    assert [fact.kind for fact in facts] == ["batch", "record", "record", "batch", "record", "log_end"]
    first, second = of_kind("batch", facts)
    assert (first["base_offset"], first["last_offset"], first["position"], first["record_count"]) == (10, 11, 0, 2)
    assert second["position"] == first["size"]
    assert {first["compression"], second["compression"]} == {codec.name.lower()}
    assert [(each["offset"], each["timestamp"], each["key"], each["value"]) for each in of_kind("record", facts)] == [
        (10, TIME, b"k0", b"a"),
        (11, TIME + 1, b"k1", b"b"),
        (12, TIME, b"k0", b"c"),
    ]
    assert facts[-1].fields == {"batches": 2, "records": 3, "first_offset": 10, "last_offset": 12}


def test_without_records_only_batches_are_shown() -> None:
    assert [fact.kind for fact in dump(batch(0, b"a", b"b"), Wanted())] == ["batch", "log_end"]


def test_a_part_of_a_log_can_be_asked_for() -> None:
    content = b"".join(batch(offset, b"a", b"b") for offset in range(0, 20, 2))
    size = len(batch(0, b"a", b"b"))
    found = of_kind("batch", dump(content, Wanted(from_offset=7, max_bytes=2 * size)))
    assert [each["base_offset"] for each in found] == [6, 8]


@pytest.mark.parametrize("position", [3, 8, 16, 40, 61])
def test_a_damaged_log_is_shown_up_to_the_damage(position: int) -> None:
    good = batch(0, b"a") + batch(1, b"b")
    bad = bytearray(batch(2, b"c"))
    bad[position] ^= 0x80
    facts = dump(good + bytes(bad) + batch(3, b"d"), Wanted())
    assert [each["base_offset"] for each in of_kind("batch", facts)][:2] == [0, 1]
    (found,) = of_kind("problem", facts)
    assert found["position"] == len(good)


def test_a_torn_end_is_a_problem_at_the_batch_that_is_not_whole() -> None:
    good = batch(0, b"a")
    facts = dump(good + batch(1, b"b")[:-1], Wanted())
    assert [fact.kind for fact in facts] == ["batch", "problem", "log_end"]
    assert facts[1].fields["position"] == len(good)
    assert "bytes of a batch of" in str(facts[1].fields["reason"])


def test_offsets_that_go_back_are_a_problem_and_no_end() -> None:
    facts = dump(batch(5, b"a") + batch(5, b"b") + batch(7, b"c"), Wanted(), base_offset=5)
    assert [fact.kind for fact in facts] == ["batch", "batch", "problem", "batch", "log_end"]
    assert dump(batch(5, b"a"), Wanted(), base_offset=6)[1].kind == "problem"


def test_records_that_cannot_be_decoded_are_a_problem_and_no_end() -> None:
    content = bytearray(batch(0, b"a") + batch(1, b"b"))
    content[61] = 1  # the first record's length
    header = read_header(content, 0)
    content[17:21] = compute_crc(content, header).to_bytes(4, "big")
    kinds = [fact.kind for fact in dump(bytes(content))]
    assert kinds == ["batch", "problem", "batch", "record", "log_end"]


def test_the_end_of_a_transaction_is_shown_even_without_records() -> None:
    value = (0).to_bytes(2, "big") + encode(EndTxnMarker(coordinator_epoch=7), 0)
    content = build_control_batch([(ControlRecordType.ABORT, value)], TIME, producer_id=5, producer_epoch=1)
    (told,) = of_kind("batch", dump(bytes(content), Wanted()))
    assert (told["control"], told["transactional"], told["producer_id"]) == (["ABORT"], True, 5)
    (record,) = of_kind("record", dump(bytes(content)))
    assert (record["record"], record["value"]) == ("ABORT", {"coordinator_epoch": 7})


def test_a_delete_horizon_is_not_taken_for_a_timestamp() -> None:
    content = bytearray(batch(0, b"a"))
    content[22] |= DELETE_HORIZON_BIT
    content[17:21] = compute_crc(content, read_header(content)).to_bytes(4, "big")
    (told,) = of_kind("batch", dump(bytes(content), Wanted()))
    assert (told["base_timestamp"], told["delete_horizon"]) == (None, TIME)


def test_a_snapshot_must_end_with_its_footer() -> None:
    parts = list(
        encode_snapshot(
            [(TopicRecord(name="orders", topic_id=bytes(16)), 0)], epoch=1, now_ms=TIME, last_contained_timestamp_ms=9
        )
    )
    decode = decoder_of(Contents.METADATA)
    whole = list(dump_metadata_snapshot(MemoryFile(b"".join(parts)), decode, RECORDS))
    assert not of_kind("problem", whole)
    assert [each["record"] for each in of_kind("record", whole)] == [
        "SNAPSHOT_HEADER",
        "TopicRecord",
        "SNAPSHOT_FOOTER",
    ]
    cut = list(dump_metadata_snapshot(MemoryFile(b"".join(parts[:-1])), decode, RECORDS))
    assert [each["reason"] for each in of_kind("problem", cut)] == ["the snapshot ends without a footer"]
