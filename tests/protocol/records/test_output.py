"""The buffer for decompressed records: it grows, it is used again, and it has a limit."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import InvalidRecords
from quire.protocol.records.output import PIECE_BYTES, Output


def test_pieces_are_put_one_behind_the_other() -> None:
    output = Output(100)
    output.add(b"abc")
    output.add(b"")
    output.add(memoryview(b"xdefx")[1:4])
    assert bytes(output.view()) == b"abcdef"
    assert output.room_bytes == 94
    assert output.taken() == b"abcdef"


def test_limit_is_exact() -> None:
    output = Output(5)
    output.add(b"abc")
    with pytest.raises(InvalidRecords) as caught:
        output.add(b"def")
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    output.fill(5)
    with pytest.raises(InvalidRecords) as caught:
        output.fill(6)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_room_is_written_directly_and_counts_when_it_is_filled() -> None:
    output = Output(100)
    output.add(b"ab")
    with output.room(3) as room:
        room[:] = b"cde"
    assert bytes(output.view()) == b"ab"
    output.fill(4)
    assert bytes(output.view()) == b"abcd"


def test_a_used_buffer_is_used_again_and_shows_nothing_of_its_past() -> None:
    scratch = bytearray(b"secret of another client")
    output = Output(100, scratch)
    output.add(b"abc")
    assert output.data is scratch
    assert bytes(output.view()) == b"abc"
    assert output.cost_bytes == 3
    assert len(scratch) == len(b"secret of another client")


def test_it_doubles_up_to_what_is_allowed() -> None:
    output = Output(10_000)
    sizes = []
    for _ in range(5):
        output.grow(6000)
        sizes.append(len(output.data))
    assert sizes == [PIECE_BYTES, 2 * PIECE_BYTES, 6000, 6000, 6000]
