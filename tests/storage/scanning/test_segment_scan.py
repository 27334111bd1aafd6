"""The scan of a segment: what it accepts, where it stops, and what it reports; compiled and interpreted alike."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.protocol.records.batch import BatchHeader, walk_batches
from quire.seams import File
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.producers.end_marker import EndMarker
from quire.storage.producers.producer_snapshot import to_bytes
from quire.storage.producers.producer_state import ProducerState
from quire.storage.scanning import segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from tests.storage.batch_walks import new_walk, ways
from tests.storage.batches import FOLDER, NOW_MS, batch, marker

PATH = f"{FOLDER}/{0:020d}.log"


class Witness:
    """Accepts everything, and records its calls."""

    def __init__(self) -> None:
        self.irregular: list[int] = []
        self.expected: list[int] = []
        self.producers = ProducerState()
        self.told: list[int] = []
        self.markers: list[tuple[int, bool]] = []
        self.refuse: str | None = None

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        self.irregular.append(header.base_offset)
        self.expected.append(expected_offset)
        return self.refuse

    def visit_producer(self, header: BatchHeader) -> None:
        self.told.append(header.base_offset)
        self.producers.update(header)

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        self.markers.append((header.base_offset, marker.aborts))
        self.producers.end_transaction(header, marker)

    def skip_damaged(self, damage: DamagedBatchError) -> int | None:
        return None


@pytest.fixture(params=ways(), ids=lambda way: way.__module__)
def way(request: pytest.FixtureRequest) -> type[BatchWalk]:
    found: type[BatchWalk] = request.param
    return found


def file_of(disk: SimDisk, *batches: bytearray) -> File:
    file = disk.open(PATH, create=True)
    file.pwritev([b"".join(batches)], 0)
    return file


def scanned(file: File, walk: BatchWalk, witness: Witness) -> DamagedBatchError | None:
    try:
        segment_scan.scan(file, 0, file.size(), walk, witness)
    except DamagedBatchError as damage:
        return damage
    return None


def numbered(*offsets: int, size: int = 50, leader_epoch: int = 0) -> list[bytearray]:
    return [batch(bytes(size), base_offset=offset, leader_epoch=leader_epoch) for offset in offsets]


def test_consecutive_batches_are_not_reported(disk: SimDisk, way: type[BatchWalk]) -> None:
    walk, witness = new_walk(way=way), Witness()
    assert scanned(file_of(disk, *numbered(*range(100))), walk, witness) is None
    assert walk.next_offset == 100
    assert witness.irregular == []


def test_batches_larger_than_what_is_read_at_once_are_checked_whole(disk: SimDisk, way: type[BatchWalk]) -> None:
    big = batch(bytes(700_000), base_offset=1, leader_epoch=0)
    file = file_of(disk, *numbered(0), big, *numbered(2, 3, size=200_000), *numbered(4))
    walk = new_walk(way=way)
    assert scanned(file, walk, Witness()) is None
    assert walk.next_offset == 5
    file.pwritev([b"!"], len(numbered(0)[0]) + 650_000)
    damage = scanned(file, new_walk(way=way), Witness())
    assert damage is not None and damage.position == len(numbered(0)[0])
    assert "checksum" in damage.reason


def test_gaps_steps_back_and_epoch_changes_are_reported(disk: SimDisk, way: type[BatchWalk]) -> None:
    batches = [*numbered(0, 1, 5), *numbered(3), *numbered(4, 5, leader_epoch=2), *numbered(6, leader_epoch=1)]
    witness = Witness()
    assert scanned(file_of(disk, *batches), new_walk(way=way), witness) is None
    assert witness.irregular == [5, 3, 4, 6]
    assert witness.expected == [2, 6, 4, 6]


def test_gaps_are_regular_where_they_are_allowed(disk: SimDisk, way: type[BatchWalk]) -> None:
    witness = Witness()
    assert scanned(file_of(disk, *numbered(2, 5, 9, 11)), new_walk(way=way, gaps_before=9), witness) is None
    assert witness.irregular == [11]


def test_batches_without_an_epoch_are_regular_in_any(disk: SimDisk, way: type[BatchWalk]) -> None:
    file = file_of(disk, *numbered(0, leader_epoch=0), *numbered(1, leader_epoch=-1), *numbered(2, leader_epoch=0))
    witness = Witness()
    assert scanned(file, new_walk(way=way), witness) is None
    assert witness.irregular == []


def test_a_refused_batch_ends_the_scan_with_the_reason(disk: SimDisk, way: type[BatchWalk]) -> None:
    witness = Witness()
    witness.refuse = "not of its colour"
    file = file_of(disk, *numbered(0, 1, 5, 6))
    damage = scanned(file, new_walk(way=way), witness)
    assert damage is not None
    assert (damage.position, damage.reason) == (2 * len(numbered(0)[0]), "not of its colour")


def test_offsets_of_the_next_segment_or_far_away_are_refused(disk: SimDisk, way: type[BatchWalk]) -> None:
    file = file_of(disk, *numbered(0, 1), batch(b"a", b"b", base_offset=2, leader_epoch=0))
    damage = scanned(file, new_walk(way=way, end_limit=3), Witness())
    assert damage is not None and "next segment" in damage.reason
    assert scanned(file, new_walk(way=way, end_limit=4), Witness()) is None
    far = file_of(disk, *numbered(0, 2**31))
    damage = scanned(far, new_walk(way=way, gaps_before=2**40), Witness())
    assert damage is not None and "does not belong here" in damage.reason


@pytest.mark.parametrize("cut", [1, 10, 60, 61, 62, 100])
def test_a_torn_batch_ends_the_scan(disk: SimDisk, way: type[BatchWalk], cut: int) -> None:
    file = file_of(disk, *numbered(0, 1))
    size = len(numbered(0)[0])
    file.truncate(size + cut)
    walk = new_walk(way=way)
    damage = scanned(file, walk, Witness())
    assert damage is not None and damage.position == size
    assert walk.next_offset == 1


@pytest.mark.parametrize("at", range(len(numbered(0)[0])))
def test_no_flipped_byte_is_overlooked(disk: SimDisk, way: type[BatchWalk], at: int) -> None:
    """Bits of the offset are found by the order, bits of the epoch are reported, and all others break checksum, magic
    or length."""
    size = len(numbered(0)[0])
    file = file_of(disk, *numbered(10, 11, 12))
    byte = file.pread(1, size + at)[0]
    file.pwritev([bytes([byte ^ 0x40])], size + at)
    witness = Witness()
    damage = scanned(file, new_walk(10, way=way), witness)
    if 12 <= at < 16:
        assert witness.irregular[0] == 11
    elif at < 8:
        assert witness.irregular or damage is not None
    else:
        assert damage is not None and damage.position == size


def test_the_first_and_the_last_five_batches_of_a_producer_are_reported(disk: SimDisk, way: type[BatchWalk]) -> None:
    batches = [
        batch(b"v", base_offset=at, leader_epoch=0, producer_id=at % 2, producer_epoch=0, sequence=at // 2)
        for at in range(40)
    ]
    witness = Witness()
    assert scanned(file_of(disk, *batches), new_walk(way=way), witness) is None
    assert witness.irregular == []
    assert witness.told == [0, 30, 32, 34, 36, 38, 1, 31, 33, 35, 37, 39]


def test_producers_before_a_damaged_batch_are_reported(disk: SimDisk, way: type[BatchWalk]) -> None:
    first = batch(b"v", base_offset=0, leader_epoch=0, producer_id=5, producer_epoch=0, sequence=0)
    witness = Witness()
    assert scanned(file_of(disk, first, bytearray(100)), new_walk(way=way), witness) is not None
    assert witness.told == [0]


steps = st.tuples(
    st.sampled_from(["plain", "idempotent", "transactional", "new epoch", "abort", "commit"]), st.integers(1, 3)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=60), st.sampled_from([100, 300, 100_000]))
def test_a_scan_finds_what_appending_left(steps: list[tuple[str, int]], index_interval: int) -> None:
    """The walk gives the same indexes and producers as a scan batch by batch."""
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    config = LogConfig(index_interval_bytes=index_interval)
    segment = Segment.create(disk, FOLDER, 0, config, IndexCache(), now_ms=NOW_MS)
    expected = ProducerState()
    epochs = {1: 0, 2: 0, 3: 0}
    for offset, (kind, producer_id) in enumerate(steps):
        if kind == "new epoch":
            epochs[producer_id] += 1
        if kind in ("abort", "commit"):
            aborts = kind == "abort"
            data = marker(producer_id, aborts=aborts, producer_epoch=epochs[producer_id], base_offset=offset)
        else:
            data = batch(
                bytes(30 * producer_id),
                timestamp=NOW_MS + (offset * 7) % 11,
                base_offset=offset,
                leader_epoch=0,
                producer_id=-1 if kind == "plain" else producer_id,
                producer_epoch=-1 if kind == "plain" else epochs[producer_id],
                sequence=-1 if kind == "plain" else offset,
                transactional=kind == "transactional",
            )
        headers = walk_batches(data)
        segment.append(data, headers)
        if kind in ("abort", "commit"):
            expected.end_transaction(headers[0], EndMarker(kind == "abort", 3))
        elif kind != "plain":
            expected.update(headers[0])
    segment.save_indexes()
    indexes = [disk.read_file(path) for path in segment.index_paths]
    for way in ways():
        witness = Witness()
        again = Segment(disk, FOLDER, 0, config, IndexCache(), now_ms=NOW_MS, size=segment.size)
        assert again.recover(new_walk(way=way, index_interval=index_interval), witness) is None
        again.save_indexes()
        assert [disk.read_file(path) for path in again.index_paths] == indexes
        assert to_bytes(witness.producers) == to_bytes(expected)
        assert witness.producers.first_open_transaction_offset == expected.first_open_transaction_offset


def test_a_scan_ends_with_the_batch_that_reaches_what_is_enough(disk: SimDisk, way: type[BatchWalk]) -> None:
    batches = [batch(b"x", base_offset=offset, leader_epoch=0) for offset in range(10)]
    file, size = file_of(disk, *batches), len(batches[0])
    for enough in range(1, 10 * size + 1):
        walk = new_walk(way=way)
        count = -(-enough // size)
        assert segment_scan.scan(file, 0, 10 * size, walk, Witness(), enough=enough) == count * size
        assert walk.next_offset == count
