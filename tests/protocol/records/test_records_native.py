"""The per-record loops: what a scan finds, and that compiled and interpreted they are the same."""

import select
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quire.protocol.records import Record, encode_native, native_compiled, records_native
from quire.seams import Buffer
from tests.protocol.records.conftest import require_compiled
from tests.protocol.records.native_modules import interpreted_module
from tests.protocol.records.raw_batches import patient, raw_record, record_lists, sized, varint

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
UNSET = -1001


def scan(native: ModuleType, section: Buffer, count: int, **options: Any) -> tuple[int, int, int, int]:
    arguments = {
        "position": 0,
        "index": 0,
        "require_key": False,
        "unset_delta": UNSET,
        "lowest_delta": INT64_MIN,
        "highest_delta": INT64_MAX,
    } | options
    found: tuple[int, int, int, int] = native.scan(
        section,
        arguments["position"],
        arguments["index"],
        count,
        arguments["require_key"],
        arguments["unset_delta"],
        arguments["lowest_delta"],
        arguments["highest_delta"],
    )
    return found


def test_scan_accepts_what_fills_its_section(native: ModuleType) -> None:
    section = b"".join(
        [
            raw_record(0, timestamp_delta=-7),
            raw_record(1, None, None, timestamp_delta=5000),
            raw_record(2, b"", b"", [(b"", None), (b"name", b"content")], timestamp_delta=12),
            raw_record(3, bytes(70), bytes(9000)),
        ]
    )
    assert scan(native, section, 4) == (native.OK, 4, len(section), 5000)


def test_scan_of_offsets_beyond_one_byte(native: ModuleType) -> None:
    section = b"".join(raw_record(index, timestamp_delta=index * 1000) for index in range(300))
    assert scan(native, section, 300) == (native.OK, 300, len(section), 299_000)


def test_latest_timestamp_of_records_without_one_is_the_unset_one(native: ModuleType) -> None:
    assert scan(native, raw_record(0, timestamp_delta=UNSET), 1)[3] == UNSET


@pytest.mark.parametrize("wrong", [0, 2, -1, 2**31 - 1, -(2**31)])
def test_scan_names_the_first_record_with_a_wrong_offset(native: ModuleType, wrong: int) -> None:
    section = raw_record(0) + raw_record(wrong) + raw_record(2)
    assert scan(native, section, 3)[:2] == (native.WRONG_OFFSET, 1)


def test_scan_names_the_first_record_without_a_key(native: ModuleType) -> None:
    section = raw_record(0) + raw_record(1, b"") + raw_record(2, None) + raw_record(3, None)
    assert scan(native, section, 4)[0] == native.OK
    found, index, position, _ = scan(native, section, 4, require_key=True)
    assert (found, index) == (native.NO_KEY, 2)
    found, index, position, _ = scan(native, section, 4, require_key=True, position=position, index=3)
    assert (found, index, position) == (native.NO_KEY, 3, len(section))


@pytest.mark.parametrize("delta", [INT64_MIN, -11, 21, INT64_MAX])
def test_scan_names_the_first_record_out_of_time(native: ModuleType, delta: int) -> None:
    section = b"".join(
        [
            raw_record(0, timestamp_delta=-10),
            raw_record(1, timestamp_delta=20),
            raw_record(2, timestamp_delta=UNSET),
            raw_record(3, timestamp_delta=delta),
        ]
    )
    found = scan(native, section, 4, lowest_delta=-10, highest_delta=20)
    assert found == (native.WRONG_TIMESTAMP, 3, len(section), delta)


def test_scan_finds_bytes_behind_the_last_record(native: ModuleType) -> None:
    assert scan(native, raw_record(0) + raw_record(1), 1)[:2] == (native.LEFTOVER, 1)


def test_scan_finds_fewer_records_than_counted(native: ModuleType) -> None:
    assert scan(native, raw_record(0), 2)[:3] == (native.MALFORMED, 1, -1)
    assert scan(native, raw_record(0), 2**31 - 1)[:3] == (native.MALFORMED, 1, -1)
    assert scan(native, b"", 1)[:3] == (native.MALFORMED, 0, -1)


def framed(body: bytes) -> bytes:
    return varint(len(body)) + body


MALFORMED = {
    "empty record": framed(b""),
    "negative length": varint(-1),
    "length beyond the section": varint(100) + bytes(99),
    "length of the largest size": varint(2**31 - 1) + bytes(20),
    "length of more than 32 bits": b"\x80\x80\x80\x80\x10",
    "length of six bytes": b"\x8e\x80\x80\x80\x80\x00" + raw_record(0)[1:],
    "length that does not end": b"\xff\xff\xff",
    "attributes alone": framed(b"\0"),
    "timestamp that does not end": framed(b"\0" + b"\xff" * 10 + b"\x00" * 5),
    "timestamp of more than 64 bits": framed(b"\0" + b"\xff" * 9 + b"\x02" + b"\0\1\1\0"),
    "offset of more than 32 bits": framed(b"\0\0" + varint(2**31) + b"\1\1\0"),
    "no key": framed(b"\0\0\0"),
    "key length of -2": framed(b"\0\0\0" + varint(-2) + b"\1\0"),
    "key beyond the record": framed(b"\0\0\0" + varint(10) + b"123") + bytes(100),
    "key of the largest size": framed(b"\0\0\0" + varint(2**31 - 1) + bytes(20)),
    "no value": framed(b"\0\0\0\1"),
    "value length of -2": framed(b"\0\0\0\1" + varint(-2) + b"\0"),
    "value beyond the record": framed(b"\0\0\0\1" + varint(10) + b"123") + bytes(100),
    "no headers": framed(b"\0\0\0\1\1"),
    "negative header count": framed(b"\0\0\0\1\1" + varint(-1)),
    "more headers than fit": framed(b"\0\0\0\1\1" + varint(2**31 - 1) + bytes(20)),
    "one header too few": framed(b"\0\0\0\1\1" + varint(2) + b"\0\0"),
    "header without a key": framed(b"\0\0\0\1\1" + varint(1) + b"\1\1"),
    "header key beyond the record": framed(b"\0\0\0\1\1" + varint(1) + varint(9) + b"abc"),
    "header value beyond the record": framed(b"\0\0\0\1\1" + varint(1) + b"\0" + varint(9) + b"abc"),
    "header value length of -2": framed(b"\0\0\0\1\1" + varint(1) + b"\0" + varint(-2)),
    "bytes behind the headers": framed(b"\0\0\0" + sized(b"k") + sized(b"v") + b"\0" + b"?"),
}


@pytest.mark.parametrize("record", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_record_is_found_and_never_decoded(native: ModuleType, record: bytes) -> None:
    section = raw_record(0) + record
    assert scan(native, section, 2)[:3] == (native.MALFORMED, 1, -1)
    with pytest.raises(ValueError, match="record 1 "):
        native.decode(section, 2, 0, 0, None)


def test_every_truncation_is_found(native: ModuleType) -> None:
    section = raw_record(0, headers=[(b"name", b"content")]) + raw_record(1, bytes(70), bytes(200))
    for size in range(len(section)):
        assert scan(native, section[:size], 2)[0] == native.MALFORMED
        with pytest.raises(ValueError, match="record"):
            native.decode(section[:size], 2, 0, 0, None)


def test_decode_takes_offsets_with_gaps(native: ModuleType) -> None:
    section = raw_record(3) + raw_record(11)
    assert [record.offset for record in native.decode(section, 2, 100, 0, None)] == [103, 111]


def test_decode_refuses_bytes_behind_the_last_record(native: ModuleType) -> None:
    with pytest.raises(ValueError, match="bytes after the last record"):
        native.decode(raw_record(0) + b"\0", 1, 0, 0, None)
    with pytest.raises(ValueError, match="bytes after the last record"):
        native.decode(raw_record(0), -1, 0, 0, None)


def test_decode_replaces_invalid_utf8_in_a_header_name(native: ModuleType) -> None:
    (record,) = native.decode(raw_record(0, headers=[(b"\xff", b"x")]), 1, 0, 0, None)
    assert record.headers == [("\ufffd", b"x")]


@pytest.mark.parametrize("delta", [0, -1, 1, 63, 64, -64, -65, 2**31, -(2**31), 2**62, INT64_MAX, INT64_MIN])
def test_encoded_timestamps_are_the_smallest_varints(native: ModuleType, delta: int) -> None:
    out = bytearray()
    native.append_record(out, 0, delta, b"key", b"value", ())
    assert bytes(out) == raw_record(0, timestamp_delta=delta)
    assert scan(native, bytes(out), 1)[3] == max(delta, UNSET)


def test_every_kind_of_buffer_is_encoded(native: ModuleType) -> None:
    out = bytearray(b"before")
    native.append_record(out, 5, 0, bytearray(b"key"), memoryview(b"value"), [("name", b"x")])
    assert bytes(out) == b"before" + raw_record(5, headers=[(b"name", b"x")])


def test_text_is_not_encoded_by_accident(native: ModuleType) -> None:
    with pytest.raises(TypeError):
        native.append_record(bytearray(), 0, 0, "text", None, ())


@patient
@given(record_lists)
def test_encoded_records_are_decoded_to_the_same(native: ModuleType, records: list[Record]) -> None:
    base = records[0].timestamp
    out = bytearray()
    native.append_records(out, records, base)
    assert scan(native, bytes(out), len(records), unset_delta=-1 - base)[0] == native.OK
    decoded = native.decode(bytes(out), len(records), 40, base, None)
    assert [record.offset for record in decoded] == list(range(40, 40 + len(records)))
    for record in decoded:
        record.offset = 0
    assert decoded == records


def outcome(native: ModuleType, section: bytes, count: int, require_key: bool) -> list[object]:
    """All results of the loops for a section, including exceptions."""
    try:
        decoded: object = native.decode(section, count, 10, 1000, None)
    except ValueError as error:
        decoded = str(error)
    found = scan(native, section, count, require_key=require_key, lowest_delta=-5000, highest_delta=5000)
    return [found, decoded]


@st.composite
def damaged_sections(draw: st.DrawFn) -> bytes:
    out = bytearray()
    records = draw(record_lists)
    interpreted_module().append_records(out, records, records[0].timestamp)
    for _ in range(draw(st.integers(0, 3))):
        if out:
            position = draw(st.integers(0, len(out) - 1))
            match draw(st.sampled_from(["change", "remove", "insert", "cut"])):
                case "change":
                    out[position] = draw(st.integers(0, 255))
                case "remove":
                    del out[position]
                case "insert":
                    out.insert(position, draw(st.integers(0, 255)))
                case "cut":
                    del out[position:]
    return bytes(out)


@settings(max_examples=400, deadline=None)
@given(damaged_sections() | st.binary(max_size=80), st.integers(-1, 6), st.booleans())
@example(b"\x80" * 40, 1, False)
def test_compiled_and_interpreted_agree_on_any_bytes(section: bytes, count: int, require_key: bool) -> None:
    require_compiled()
    expected = outcome(interpreted_module(), section, count, require_key)
    assert outcome(records_native, section, count, require_key) == expected


@patient
@given(record_lists)
def test_compiled_and_interpreted_encode_alike(records: list[Record]) -> None:
    require_compiled()
    compiled, interpreted = bytearray(), bytearray()
    encode_native.append_records(compiled, records, records[0].timestamp)
    interpreted_module().append_records(interpreted, records, records[0].timestamp)
    assert compiled == interpreted


def test_long_scans_let_other_threads_run() -> None:
    require_compiled()
    section = bytearray()
    for index in range(200_000):
        encode_native.append_record(section, index, 0, b"", b"", ())
    assert len(section) > 1 << 20
    turns = 0
    stopped = False

    def take_turns() -> None:
        nonlocal turns
        while not stopped:
            turns += 1
            select.select([], [], [], 0)  # other threads get the GIL at once, so only the scan is measured

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        for _ in range(500):
            before = turns
            found = scan(records_native, section, 200_000)
            after = turns
            assert found[0] == records_native.OK
            if after > before:
                return
        pytest.fail("no other thread ran during 500 scans of more than a megabyte")
    finally:
        stopped = True
        sys.setswitchinterval(interval)
        thread.join()


def test_package_knows_whether_it_is_compiled() -> None:
    require_compiled()
    assert native_compiled()
