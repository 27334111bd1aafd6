import logging

import pytest
from crc32c import crc32c

from quire.protocol.codec import decode, encode
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.producer_snapshot import ProducerSnapshot
from quire.storage.producers.end_marker import EndMarker
from quire.storage.producers.producer_snapshot import (
    VERSION,
    CorruptSnapshotError,
    ProducerSnapshots,
    from_bytes,
    to_bytes,
)
from quire.storage.producers.producer_state import ProducerState
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, batch, header, marker

BODY = bytes.fromhex(
    "00000001"  # one producer
    "0000000000000fa1"  # producer id 4001
    "0003"  # epoch
    "00000007"  # last sequence
    "00000000000000aa"  # last offset 170
    "00000002"  # offset delta
    "0000018bcfe568ab"  # timestamp
    "ffffffff"  # coordinator epoch
    "ffffffffffffffff"  # no open transaction
)
GOLDEN = bytes.fromhex("0001") + crc32c(BODY).to_bytes(4, "big") + BODY


def state_of_one_producer() -> ProducerState:
    state = ProducerState()
    data = batch(
        b"a", b"b", b"c", producer_id=4001, producer_epoch=3, sequence=5, base_offset=168, timestamp=0x18BCFE568AB
    )
    state.update(header(data))
    return state


def test_the_bytes_are_kafkas() -> None:
    assert to_bytes(state_of_one_producer()) == GOLDEN


def test_the_bytes_are_those_of_the_message() -> None:
    state = state_of_one_producer()
    for sequence in range(3):
        state.update(header(batch(producer_id=9, producer_epoch=2, sequence=sequence, base_offset=sequence)))
    state.update(header(batch(producer_id=10, producer_epoch=0, sequence=0, base_offset=33, transactional=True)))
    end = marker(11, aborts=True, producer_epoch=1, base_offset=34)
    state.end_transaction(header(end), EndMarker(aborts=True, coordinator_epoch=3))
    content = to_bytes(state)
    snapshot = decode(ProducerSnapshot, content, VERSION, 2)
    assert len(snapshot.producer_entries) == 1 + 3 + 1 + 1
    assert content == VERSION.to_bytes(2, "big") + encode(snapshot, VERSION)


def test_reading_gives_back_each_producers_last_batch() -> None:
    (producer,) = from_bytes(GOLDEN)
    assert (producer.producer_id, producer.epoch, producer.last_timestamp) == (4001, 3, 0x18BCFE568AB)
    (last,) = producer.batches
    assert (last.first_sequence, last.last_sequence, last.first_offset, last.last_offset) == (5, 7, 168, 170)
    assert producer.current_txn_first_offset == -1


def test_all_remembered_batches_survive_the_newest_last() -> None:
    state = ProducerState()
    for number in range(7):
        state.update(header(batch(producer_id=9, producer_epoch=0, sequence=number, base_offset=number)))
        state.update(header(batch(producer_id=10, producer_epoch=0, sequence=number, base_offset=100 + number)))
    first, second = from_bytes(to_bytes(state))
    assert [known.last_offset for known in first.batches] == [2, 3, 4, 5, 6]
    assert [known.last_offset for known in second.batches] == [102, 103, 104, 105, 106]
    resent = header(batch(producer_id=9, producer_epoch=0, sequence=2, base_offset=0))
    duplicate = from_bytes(to_bytes(state)).check(resent)
    assert duplicate is not None and duplicate.last_offset == 2


def test_an_open_transaction_survives() -> None:
    state = ProducerState()
    state.update(header(batch(producer_id=9, producer_epoch=0, sequence=0, base_offset=33, transactional=True)))
    assert from_bytes(to_bytes(state)).first_open_transaction_offset == 33


def test_a_snapshot_tells_repeated_batches_from_those_that_reuse_sequence_numbers() -> None:
    state = ProducerState()
    for at, sequence in enumerate(range(3)):
        state.update(
            header(batch(producer_id=7, producer_epoch=0, sequence=sequence, base_offset=at, transactional=True))
        )
        if sequence == 0:
            state.end_transaction(header(marker(7, aborts=True, base_offset=at)), EndMarker(True, 0))
    again = from_bytes(to_bytes(state))
    for both in (state, again):
        with pytest.raises(ApiError) as refused:
            both.check(header(batch(producer_id=7, producer_epoch=0, sequence=0, transactional=True)))
        assert refused.value.code is ErrorCode.UNKNOWN_PRODUCER_ID
        assert both.check(header(batch(producer_id=7, producer_epoch=0, sequence=1, transactional=True))) is not None


def test_a_producer_that_only_ended_a_transaction_has_no_batch() -> None:
    state = ProducerState()
    end = marker(9, aborts=True, producer_epoch=1, base_offset=33)
    state.end_transaction(header(end), EndMarker(aborts=True, coordinator_epoch=3))
    (producer,) = from_bytes(to_bytes(state))
    assert producer.batches == []
    assert producer.last_sequence == -1


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    for position in range(len(GOLDEN)):
        damaged = bytearray(GOLDEN)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptSnapshotError):
            from_bytes(bytes(damaged))
        with pytest.raises(CorruptSnapshotError):
            from_bytes(GOLDEN[:position])


def test_the_newest_readable_snapshot_at_or_before_an_offset_is_used(
    disk: SimDisk, caplog: pytest.LogCaptureFixture
) -> None:
    snapshots = ProducerSnapshots(disk, FOLDER, [])
    snapshots.write(100, ProducerState())
    snapshots.write(300, state_of_one_producer())
    path = snapshots.write(200, state_of_one_producer())
    disk.open(path).pwritev([b"x"], 10)
    assert snapshots.newest(99) is None
    with caplog.at_level(logging.WARNING):
        newest = snapshots.newest(299)
    assert newest is not None and newest[0] == 100
    assert "00000000000000000200.snapshot" in caplog.text
    assert not disk.exists(path), "an unreadable snapshot only misleads"
    newest = snapshots.newest(300)
    assert newest is not None and len(newest[1]) == 1


def test_snapshots_can_be_removed_from_both_ends(disk: SimDisk) -> None:
    snapshots = ProducerSnapshots(disk, FOLDER, [])
    for offset in (100, 200, 300, 400):
        snapshots.write(offset, ProducerState())
    snapshots.remove_before(200)
    snapshots.remove_after(300)
    assert snapshots.offsets == [200, 300]
    assert disk.list_dir(FOLDER) == ["00000000000000000200.snapshot", "00000000000000000300.snapshot"]
