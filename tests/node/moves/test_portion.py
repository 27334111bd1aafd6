"""What one job reads of a log that moves."""

import pytest

from quire.node.moves.portion import PIECE_BATCHES, Piece, read_portion
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record, build_batch, walk_batches
from quire.protocol.records.batch import patch
from quire.seams import FileSlice
from simulator.disk import SimDisk


def slice_of(count: int, first: int = 0, *, records: int = 1, cut: int = 0) -> FileSlice:
    """A slice with batches at rising offsets."""
    content = b""
    for number in range(count):
        batch = bytearray(build_batch([Record(each, 1, None, b"v") for each in range(records)]))
        patch(batch, 0, first + number * records, 3)
        content += batch
    file = SimDisk().open("/00000000000000000000.log", create=True)
    file.pwritev([content], 0)
    return FileSlice(file, 0, len(content) - cut)


def offsets(pieces: list[Piece]) -> list[list[int]]:
    """As they are in the bytes of each piece."""
    return [[header.base_offset for header in walk_batches(piece.records)] for piece in pieces]


def test_the_batches_come_in_pieces_of_limited_number_and_size() -> None:
    count = 2 * PIECE_BATCHES + 1
    pieces = read_portion(slice_of(count), 0, 1 << 20)
    assert [len(piece.headers) for piece in pieces] == [PIECE_BATCHES, PIECE_BATCHES, 1]
    assert [offset for piece in offsets(pieces) for offset in piece] == list(range(count))
    assert [[header.base_offset for header in piece.headers] for piece in pieces] == offsets(pieces)
    assert all(piece.headers[-1].end == len(piece.records) for piece in pieces)
    size = slice_of(1).size
    assert offsets(read_portion(slice_of(5), 0, 2 * size)) == [[0, 1], [2, 3], [4]]
    assert offsets(read_portion(slice_of(2), 0, size - 1)) == [[0], [1]], "at least one batch"


def test_a_batch_that_is_not_whole_comes_with_the_next_portion() -> None:
    assert offsets(read_portion(slice_of(3, cut=1), 0, 1 << 20)) == [[0, 1]]
    assert read_portion(slice_of(1, cut=1), 0, 1 << 20) == []


def test_a_log_may_start_in_the_middle_of_its_first_batch() -> None:
    assert offsets(read_portion(slice_of(2, records=5), 3, 1 << 20)) == [[0, 5]]


@pytest.mark.parametrize("end_offset", [1, 7])
def test_batches_that_the_copy_has_are_refused(end_offset: int) -> None:
    with pytest.raises(ApiError) as caught:
        read_portion(slice_of(3), end_offset, 1 << 20)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_damaged_batch_is_refused() -> None:
    part = slice_of(3)
    part.file.pwritev([b"X"], part.size - 2)
    with pytest.raises(ApiError, match="CRC"):
        read_portion(part, 0, 1 << 20)
