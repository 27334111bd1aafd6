import pytest

from quire.seams.disk import write_atomically
from quire.storage.directory.checkpoints import CheckpointError
from quire.storage.leader_epochs import LeaderEpochs, epochs_path, read_epochs
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER

PATH = f"{FOLDER}/leader-epoch-checkpoint"


def test_the_file_has_version_count_and_a_line_per_epoch(disk: SimDisk) -> None:
    write_atomically(disk, epochs_path(FOLDER), LeaderEpochs([(0, 0), (2, 117)]).to_bytes())
    assert disk.read_file(PATH) == b"0\n2\n0 0\n2 117\n"
    assert read_epochs(disk, FOLDER).entries == [(0, 0), (2, 117)]


def test_a_malformed_file_is_refused(disk: SimDisk) -> None:
    write_atomically(disk, epochs_path(FOLDER), b"0\n1\n0 zero\n")
    with pytest.raises(CheckpointError, match="epoch"):
        read_epochs(disk, FOLDER)


def test_an_epoch_keeps_the_offset_it_began_at() -> None:
    epochs = LeaderEpochs([(1, 10)])
    epochs.assign(1, 20)
    assert epochs.entries == [(1, 10)]
    assert epochs.latest == 1


def test_a_new_epoch_replaces_entries_it_contradicts() -> None:
    epochs = LeaderEpochs([(1, 10), (2, 20), (3, 30)])
    epochs.assign(4, 20)
    assert epochs.entries == [(1, 10), (4, 20)]
    epochs.assign(2, 15)
    assert epochs.entries == [(1, 10), (2, 15)]


def test_an_epoch_ends_where_the_next_one_begins_or_at_the_end_of_the_log() -> None:
    epochs = LeaderEpochs([(1, 10), (4, 20), (5, 30)])
    assert epochs.end_offset_for(5, 99) == (5, 99)
    assert epochs.end_offset_for(4, 99) == (4, 30)
    assert epochs.end_offset_for(3, 99) == (1, 20), "the newest epoch below the one asked for"
    assert epochs.end_offset_for(1, 99) == (1, 20)


def test_an_epoch_older_than_the_log_ends_where_the_log_begins() -> None:
    assert LeaderEpochs([(4, 20), (5, 30)]).end_offset_for(2, 99) == (2, 20)


def test_unknown_and_future_epochs_have_no_end() -> None:
    epochs = LeaderEpochs([(1, 10)])
    assert epochs.end_offset_for(2, 99) == (-1, -1)
    assert epochs.end_offset_for(-1, 99) == (-1, -1)
    assert LeaderEpochs().end_offset_for(0, 99) == (-1, -1)


def test_each_offset_belongs_to_the_epoch_that_wrote_it() -> None:
    epochs = LeaderEpochs([(1, 10), (4, 20)])
    assert [epochs.epoch_of(offset) for offset in (9, 10, 19, 20, 1000)] == [-1, 1, 1, 4, 4]


def test_truncating_the_end_drops_epochs_without_records() -> None:
    epochs = LeaderEpochs([(1, 10), (4, 20), (5, 30)])
    epochs.truncate_from_end(30)
    assert epochs.entries == [(1, 10), (4, 20)]
    epochs.truncate_from_end(11)
    assert epochs.entries == [(1, 10)]
    epochs.truncate_from_end(0)
    assert epochs.latest == -1


def test_truncating_the_start_lets_the_epoch_there_begin_with_the_log() -> None:
    epochs = LeaderEpochs([(1, 10), (4, 20), (5, 30)])
    epochs.truncate_from_start(25)
    assert epochs.entries == [(4, 25), (5, 30)]
    epochs.truncate_from_start(5)
    assert epochs.entries == [(4, 25), (5, 30)]
    epochs.truncate_from_start(31)
    assert epochs.entries == [(5, 31)]
