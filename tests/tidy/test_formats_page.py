"""The hexadecimal examples in docs/formats.md have the content that the page describes."""

import re
from pathlib import Path
from struct import Struct

from quire.cli.storage.dump.folders import Kind
from quire.cli.storage.dump.small_files import dump_small_file
from quire.protocol import uuids
from quire.protocol.messages.metadata_records import TopicRecord
from quire.protocol.records import Record, check_crc, decode_batch, read_header
from quire.raft.record_frame import decode_frame
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import TimeIndex
from quire.storage.indexes.transaction_index import TransactionIndex

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
LINE = re.compile(r"((?:[0-9a-f]{2} ?)+)(?:\s{3,}|$)(.*)")


class Example:
    """A block: its bytes, and the annotations of some of them (`name = value`)."""

    def __init__(self, block: str) -> None:
        self.content = b""
        self.said: dict[str, str] = {}
        for line in block.splitlines():
            match = LINE.fullmatch(line)
            assert match, line
            self.content += bytes.fromhex(match[1])
            name, equals, value = match[2].partition(" = ")
            if equals:
                self.said[name] = value

    def numbers(self) -> list[int]:
        return [int(value) for value in self.said.values()]


def examples(kind: str) -> list[Example]:
    blocks = re.findall(rf"```hex {kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks, f"there is no example of {kind}"
    return [Example(block) for block in blocks]


def test_batches_have_the_fields_shown_beside_them() -> None:
    for example in examples("batch"):
        header = read_header(example.content)
        check_crc(example.content, header)
        assert header.end == len(example.content)
        for name, value in example.said.items():
            assert getattr(header, name.replace(" ", "_")) == int(value), name


def test_batches_have_the_records_that_the_page_describes() -> None:
    plain, control = examples("batch")
    assert decode_batch(plain.content, read_header(plain.content)) == [
        Record(170, 1_700_000_000_000, b"k", b"hi"),
        Record(171, 1_700_000_000_005, None, b"", [("h", None)]),
    ]
    header = read_header(control.content)
    assert header.is_control and header.is_transactional
    (marker,) = decode_batch(control.content, header)
    assert (marker.key, marker.value) == (b"\0\0\0\0", b"\0\0\0\0\0\7")


def check_entry(kind: str, entry: Struct) -> None:
    for example in examples(kind):
        assert list(entry.unpack(example.content)) == example.numbers()


def test_index_entries_are_what_they_say() -> None:
    check_entry("offset-index", OffsetIndex.ENTRY)
    check_entry("time-index", TimeIndex.ENTRY)
    check_entry("transaction-index", TransactionIndex.ENTRY)


def test_producers_are_what_they_say() -> None:
    (example,) = examples("producers")
    (fact,) = dump_small_file(Kind.PRODUCERS, example.content, "the example")
    for name in ("version", "crc", "count"):
        assert example.said.pop(name)
    assert fact.fields == {name.replace(" ", "_"): int(value) for name, value in example.said.items()}


def test_the_metadata_record_is_what_it_says() -> None:
    (example,) = examples("metadata-record")
    record = decode_frame(example.content)
    assert record == TopicRecord(name=example.said["name"], topic_id=uuids.from_text(example.said["topic id"]))
    assert list(example.content[:3]) == [int(example.said[name]) for name in ("frame version", "type", "version")]
