"""The metadata log of a quorum of one: elections, commits, replay, snapshots, truncation and disk failures."""

import errno
from typing import Any

import pytest

from quire.protocol.records import build_batch, walk_batches
from quire.protocol.records.record import Record
from quire.raft.core import NotLeaderError
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_file import encode_snapshot, file_name, write_snapshot
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.damage import find_intact
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.raft.sim_log import KEY, PATH, VOTERS, SimLog, format_folder, setting


def started(disk: SimDisk | None = None, **settings: Any) -> SimLog:
    return SimLog(disk or format_folder(SimDisk()), settings=MetadataLogSettings(**settings)).open().run()


def test_a_node_elects_itself_and_its_listener_learns_it_after_the_commit() -> None:
    sim = SimLog(format_folder(SimDisk()))
    sim.open()
    assert sim.leaders == [(None, 0), (None, 1)]
    assert not sim.log.is_leader
    sim.run()
    assert sim.leaders[-1] == (1, 1)
    assert sim.log.is_leader
    assert sim.disk.read_file(f"{PATH}/quorum-state").startswith(b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,')


def test_a_record_is_reported_when_it_is_on_disk_and_not_before() -> None:
    sim = started()
    base_offset = sim.append("a", "b")
    assert sim.values == []
    sim.run()
    assert sim.values == ["a", "b"]
    assert (sim.batches[-1].base_offset, sim.batches[-1].last_offset) == (base_offset, base_offset + 1)
    assert sim.log.high_watermark == base_offset + 2


def test_appends_made_while_the_disk_is_busy_share_the_next_sync() -> None:
    sim = started()
    before = sim.disk.operations
    for number in range(50):
        sim.append(str(number))
    sim.run()
    syncs = sim.disk.operations - before - 50
    assert sim.values == [str(number) for number in range(50)]
    assert syncs <= 6


def test_a_restart_replays_to_the_same_state_in_a_new_epoch() -> None:
    sim = started()
    sim.append("a")
    sim.append("b", "c")
    sim.run()
    sim.log.close()
    again = started(sim.disk.kill())
    assert again.values == ["a", "b", "c"]
    assert again.leaders[-1] == (1, 2)


def test_power_loss_loses_only_unreported_records() -> None:
    sim = started()
    sim.append("a")
    sim.run()
    sim.append("b")
    again = started(sim.disk.crash(SimRandom(7)))
    assert again.values in (["a"], ["a", "b"])


def test_a_closed_log_tells_nothing_and_leaves_nothing_open() -> None:
    sim = started()
    sim.append("a")
    sim.log.close()
    sim.log.close()
    sim.run()
    assert sim.values == []
    assert sim.disk.open_paths() == []
    assert started(sim.disk.kill()).values == ["a"]


def test_a_failing_disk_ends_it_once() -> None:
    sim = started()
    sim.disk.fail_when(lambda operation: operation.kind == "sync")
    sim.append("a")
    sim.run()
    sim.append("b")
    sim.run()
    assert len(sim.failures) == 1 and isinstance(sim.failures[0], OSError)
    assert sim.values == []


def test_a_write_that_fails_ends_it_too() -> None:
    sim = started()
    sim.disk.fail_when(lambda operation: operation.kind == "write" and operation.path.endswith(".log"))
    sim.append("a")
    assert len(sim.failures) == 1


def test_a_full_disk_keeps_it_waiting_until_there_is_room_and_nothing_is_lost_or_out_of_order() -> None:
    sim = started()
    sim.append("a")
    sim.run()
    sim.disk.capacity_bytes = 0
    for value in ("b", "c"):
        sim.append(value)
    sim.clock.run_for(10_000)
    assert (sim.log.waits_for_room, sim.values, sim.failures) == (True, ["a"], [])
    sim.disk.capacity_bytes = None
    sim.append("d")
    sim.clock.run_for(2_000)
    assert (sim.log.waits_for_room, sim.values) == (False, ["a", "b", "c", "d"])
    assert started(sim.disk.crash(SimRandom(7))).values == ["a", "b", "c", "d"]


def test_the_only_voter_knows_that_it_leads_even_while_its_disk_is_full() -> None:
    sim = started()
    sim.disk.capacity_bytes = 0
    sim.append("a")
    assert sim.log.waits_for_room
    assert sim.log.check_leadership().value is True


def test_a_log_that_is_closed_does_not_lead() -> None:
    sim = started()
    sim.log.close()
    assert sim.log.check_leadership().value is False


def test_a_record_that_waited_for_room_at_a_power_loss_was_never_reported_and_is_lost() -> None:
    sim = started()
    sim.append("a")
    sim.run()
    sim.disk.capacity_bytes = 0
    sim.append("b")
    sim.clock.run_for(10_000)
    disk = sim.disk.crash(SimRandom(7))
    disk.capacity_bytes = None
    assert started(disk).values == ["a"]


def test_a_snapshot_that_finds_no_room_is_written_later() -> None:
    sim = started()
    sim.append("a")
    sim.run()
    sim.disk.fail_when(lambda operation: operation.path.endswith(".part"), errno.ENOSPC)
    sim.log.take_snapshot()
    sim.run()
    assert sim.failures == []
    before = sim.disk.list_dir(PATH)
    assert not any(name.endswith(".part") for name in before)
    sim.clock.run_for(61_000)
    assert len([name for name in sim.disk.list_dir(PATH) if name.endswith(".checkpoint")]) == 1 + len(
        [name for name in before if name.endswith(".checkpoint")]
    )


def test_only_the_leader_takes_records() -> None:
    sim = SimLog(format_folder(SimDisk()))
    sim.open()
    sim.run()
    sim.log.close()
    with pytest.raises(NotLeaderError):
        sim.append("a")


def test_a_folder_that_names_no_voters_needs_them_from_the_configuration() -> None:
    disk = SimDisk()
    disk.make_dirs("/meta")
    with pytest.raises(MetadataLogError, match="does not say who votes"):
        SimLog(disk).open()
    static = SimLog(disk, static_voters=VoterSet.of_ids([KEY.id])).open().run()
    assert static.log.is_leader and static.log.kraft_version == 0
    static.append("a")
    static.run()
    assert b'"currentVoters":[{"voterId":1}],"data_version":0}' in disk.read_file(f"{PATH}/quorum-state")
    assert SimLog(disk.kill(), static_voters=VoterSet.of_ids([KEY.id])).open().run().values == ["a"]


def test_a_record_of_the_future_ends_it_by_name() -> None:
    sim = started()
    sim.log.close()
    disk = sim.disk.kill()
    file = disk.open(f"{PATH}/00000000000000000000.log")
    unknown = build_batch([Record(0, 1, None, b"\x01\x63\x00")], base_offset=3, leader_epoch=1)
    file.pwritev([unknown], file.size())
    again = started(disk)
    assert [str(failure) for failure in again.failures] and "type 99" in str(again.failures[0])
    assert not again.log.is_leader


def test_a_snapshot_is_taken_when_enough_was_written() -> None:
    sim = started(bytes_between_snapshots=2_000)
    for number in range(60):
        sim.append(str(number))
        sim.run(20)
    assert len([name for name in sim.disk.list_dir(PATH) if name.endswith(".checkpoint")]) > 1
    again = started(sim.disk.kill())
    assert again.values == [str(number) for number in range(60)]
    assert again.batches[0].base_offset > 3, "it began with a snapshot"


def test_a_snapshot_is_taken_some_while_after_a_change() -> None:
    sim = started(snapshot_interval_ms=60_000)
    sim.append("a")
    sim.run(59_000)
    assert len([name for name in sim.disk.list_dir(PATH) if name.endswith(".checkpoint")]) == 1
    sim.run(2_000)
    assert "00000000000000000004-0000000001.checkpoint" in sim.disk.list_dir(PATH)
    sim.run(600_000)
    assert len([name for name in sim.disk.list_dir(PATH) if name.endswith(".checkpoint")]) == 2, "nothing changed since"


def test_the_snapshot_before_the_newest_stays_however_old_it_is() -> None:
    sim = started(bytes_between_snapshots=1_000, retention_bytes=1, retention_ms=0)
    for number in range(80):
        sim.append(str(number))
        sim.run(20)
    assert len([name for name in sim.disk.list_dir(PATH) if name.endswith(".checkpoint")]) == 2


def test_segments_that_a_snapshot_replaces_are_deleted_when_there_are_too_many() -> None:
    sim = started(bytes_between_snapshots=1_000, retention_bytes=4_000)
    for number in range(200):
        sim.append(str(number))
        sim.run(20)
    names = sim.disk.list_dir(PATH)
    assert "00000000000000000000.log" not in names
    assert "00000000000000000000-0000000000.checkpoint" not in names
    again = started(sim.disk.kill())
    assert again.values == [str(number) for number in range(200)]
    assert not again.failures


def test_a_damaged_snapshot_is_passed_over_for_the_one_before() -> None:
    sim = started()
    sim.append("a")
    sim.run()
    sim.log.take_snapshot()
    sim.run()
    sim.append("b")
    sim.run()
    disk = sim.disk.kill()
    newest = f"{PATH}/00000000000000000004-0000000001.checkpoint"
    disk.open(newest).truncate(100)
    assert started(disk).values == ["a", "b"]


def test_a_log_that_lost_its_only_snapshot_is_refused() -> None:
    sim = started(bytes_between_snapshots=1_000, retention_bytes=1)
    for number in range(80):
        sim.append(str(number))
        sim.run(20)
    disk = sim.disk.kill()
    for name in disk.list_dir(PATH):
        if name.endswith(".checkpoint"):
            disk.remove(f"{PATH}/{name}")
    with pytest.raises(MetadataLogError, match="no whole snapshot"):
        SimLog(disk).open()


def test_a_snapshot_beyond_the_log_takes_its_place() -> None:
    sim = started()
    sim.append("a", "b")
    sim.run()
    sim.log.take_snapshot()
    sim.run()
    disk = sim.disk.kill()
    for name in disk.list_dir(PATH):
        if name.endswith((".log", ".index", ".timeindex")) or name == "leader-epoch-checkpoint":
            disk.remove(f"{PATH}/{name}")
    again = started(disk)
    assert again.values == ["a", "b"]
    assert again.append("c") > 4
    again.run()
    assert started(again.disk.kill()).values == ["a", "b", "c"]


def test_a_snapshot_of_a_later_leader_replaces_a_longer_log() -> None:
    """A crash came after the snapshot was fetched, and before the log was restarted at its end."""
    sim = started()
    for value in ("never", "committed", "anywhere"):
        sim.append(value)
    sim.run()
    disk = sim.disk.kill()
    position = LogPosition(7, sim.log.next_offset - 1)
    content = encode_snapshot(
        [setting("a")], epoch=7, now_ms=1, last_contained_timestamp_ms=1, kraft_version=1, voters=VOTERS
    )
    write_snapshot(disk, PATH, file_name(position), content)
    again = started(disk)
    assert again.values == ["a"]
    assert again.log.start_offset == position.offset
    assert again.leaders[-1] == (1, 8)


def test_a_snapshot_of_an_earlier_leader_replaces_a_log_that_ends_differently() -> None:
    """The state after figure 8 of the Raft paper: a later leader has committed the records of the earlier one."""
    sim = started()
    sim.append("a")
    sim.run()
    sim = started(sim.disk.kill())
    for value in ("never", "committed", "anywhere"):
        sim.append(value)
    sim.run()
    disk = sim.disk.kill()
    position = LogPosition(1, sim.log.next_offset - 1)
    content = encode_snapshot(
        [setting("a"), setting("b")], epoch=1, now_ms=1, last_contained_timestamp_ms=1, kraft_version=1, voters=VOTERS
    )
    write_snapshot(disk, PATH, file_name(position), content)
    again = started(disk)
    assert again.values == ["a", "b"]
    assert again.log.start_offset == position.offset
    assert again.leaders[-1] == (1, 3)


def test_an_unfinished_snapshot_is_swept_away() -> None:
    disk = format_folder(SimDisk())
    disk.open(f"{PATH}/00000000000000000070-0000000003.checkpoint.part", create=True)
    started(disk)
    assert not disk.exists(f"{PATH}/00000000000000000070-0000000003.checkpoint.part")


LOG_FILE = f"{PATH}/00000000000000000000.log"


def content_of(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_file(f"{PATH}/{name}") for name in disk.list_dir(PATH)}


def test_a_damaged_middle_is_refused_with_everything_left_as_it_is_and_a_damaged_end_is_cut() -> None:
    sim = started()
    for value in ("a", "b", "c"):
        sim.append(value)
    sim.run()
    sim.log.close()
    whole = sim.disk.read_file(LOG_FILE)
    *_, last = walk_batches(whole)
    for position in range(len(whole)):
        disk = sim.disk = sim.disk.kill()
        file = disk.open(LOG_FILE)
        file.truncate(0)
        file.pwritev([whole], 0)
        file.pwritev([bytes([whole[position] ^ 0x40])], position)
        file.close()
        before = content_of(disk)
        # If only its offset is wrong, the last batch counts as intact and too far ahead.
        if position < last.position + 8:
            with pytest.raises(MetadataLogError, match=r"000\.log is damaged at position \d+, .* Restore the file"):
                started(disk)
            assert content_of(disk) == before, position
        else:
            assert started(disk).values in (["a", "b"], ["a", "b", "c"])


@pytest.mark.parametrize("damaged", ["a byte", "the end", "the file"])
def test_damage_before_another_segment_is_refused(damaged: str) -> None:
    sim = started(segment_bytes=200)
    for value in ("a" * 100, "b" * 100, "c" * 100):
        sim.append(value)
        sim.run()
    sim.log.close()
    disk = sim.disk.kill()
    files = [f"{PATH}/{name}" for name in disk.list_dir(PATH) if name.endswith(".log")]
    assert len(files) > 3
    if damaged == "the file":
        disk.remove(files[1])
    else:
        file = disk.open(files[1])
        file.truncate(file.size() - (damaged == "the end"))
        file.pwritev([b"?"], 80)
    with pytest.raises(MetadataLogError, match="Restore the file"):
        started(disk, segment_bytes=200)


def test_a_power_loss_does_not_count_as_damage_for_any_order_of_written_sectors() -> None:
    holes = 0
    for seed in range(200):
        sim = started(segment_bytes=4000)
        for number in range(seed % 20):
            sim.append(f"{number} " + "x" * (seed * 37 % 700))
            sim.run(seed % 3 * 0.05)
        told = sim.values.copy()
        disk = sim.disk.crash(SimRandom(seed), reorder=True)
        holes += has_a_hole(disk)
        again = started(disk, segment_bytes=4000)
        assert again.values[: len(told)] == told, seed
        assert not again.failures, seed
    assert holes > 10


def has_a_hole(disk: SimDisk) -> bool:
    """Whether an intact batch follows a damaged one."""
    newest = max(name for name in disk.list_dir(PATH) if name.endswith(".log"))
    file = disk.open(f"{PATH}/{newest}")
    end_offset = 0
    try:
        for _, header in batch_scan.checked(file, 0, file.size()):
            end_offset = header.next_offset
    except DamagedBatchError as damaged:
        return find_intact(file, damaged.position, file.size(), end_offset + 1) is not None
    return False
