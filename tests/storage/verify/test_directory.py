"""Checking a directory offline: an intact one has no findings, and each kind of damage has one with its location."""

import pytest

from quire.protocol.records.batch import walk_batches
from quire.seams.disk import write_atomically
from quire.storage.directory.clean_shutdown import write_mark
from quire.storage.directory.meta_properties import MetaProperties, write_meta
from quire.storage.errors import DataDirectoryError
from quire.storage.leader_epochs import LeaderEpochs, epochs_path
from quire.storage.log_config import LogConfig
from quire.storage.recovery.roll_mark import make_mark
from quire.storage.verify.directory import log_bytes, verify_directory
from quire.storage.verify.finding import Finding
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, append, batch, marker, open_log

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)
CHECKPOINT = "data/recovery-point-offset-checkpoint"


def name(offset: int, suffix: str = ".log") -> str:
    return f"{FOLDER}/{offset:020d}{suffix}"


@pytest.fixture
def directory(disk: SimDisk) -> SimDisk:
    """Three leaders, a producer with an aborted transaction in each segment, checkpoints."""
    write_meta(disk, "data", MetaProperties("cluster", 1, bytes(range(16))))
    log = open_log(disk, CONFIG)
    for sequence in range(12):
        value = bytes([65 + sequence]) * 60
        epoch = sequence // 4
        transactional = batch(value, producer_id=1, producer_epoch=0, sequence=sequence, transactional=True)
        append(log, transactional, leader_epoch=epoch)
        append(log, marker(1, aborts=True), leader_epoch=epoch)
    log.close()
    disk.open(CHECKPOINT, create=True).pwritev([b"0\n1\norders 0 24\n"], 0)
    return disk


def findings(disk: SimDisk) -> list[Finding]:
    return list(verify_directory(disk, "data", lambda size: None))


def overwrite(disk: SimDisk, path: str, content: bytes, position: int = 0) -> None:
    file = disk.open(path)
    file.pwritev([content], position)
    file.close()


def test_an_intact_directory_has_no_findings_and_is_not_changed(directory: SimDisk) -> None:
    before = directory.operations
    seen: list[int] = []
    assert list(verify_directory(directory, "data", seen.append)) == []
    assert directory.operations == before
    assert sum(seen) == log_bytes(directory, "data") > 1000


def test_each_flipped_byte_of_a_log_is_found(directory: SimDisk) -> None:
    right = directory.read_file(name(0))
    for position in range(len(right)):
        overwrite(directory, name(0), bytes([right[position] ^ 0x10]), position)
        assert findings(directory), f"byte {position}"
        overwrite(directory, name(0), right)


def test_a_batch_with_a_wrong_offset_is_named_and_not_the_one_behind_it(directory: SimDisk) -> None:
    second = walk_batches(directory.read_file(name(0)))[1]
    overwrite(directory, name(0), (second.base_offset + 1).to_bytes(8, "big"), second.position)
    (found,) = [finding for finding in findings(directory) if finding.path == name(0)]
    assert found.position == second.position
    assert "its offset is 2, the next one 2" in found.what


def test_all_damages_of_a_log_are_found(directory: SimDisk) -> None:
    size = directory.file_size(name(0))
    overwrite(directory, name(0), b"\xff", 100)
    overwrite(directory, name(0), b"\xff", size - 90)
    damages = [finding for finding in findings(directory) if finding.path == name(0)]
    assert len(damages) == 2
    assert all(finding.position is not None for finding in damages)


def test_a_torn_end_is_found(directory: SimDisk) -> None:
    last = [each for each in directory.list_dir(FOLDER) if each.endswith(".log")][-1]
    path = f"{FOLDER}/{last}"
    size = directory.file_size(path)
    directory.open(path).truncate(size - 3)
    first = findings(directory)[0]
    assert first.path == path and "bytes of a batch" in first.what


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (name(0, ".index"), b"\0\0\0\1\0\0\0\7"),
        (name(0, ".timeindex"), b"\x7f"),
        (name(0, ".txnindex"), b"\1"),
        (f"{FOLDER}/leader-epoch-checkpoint", b"x"),
        (CHECKPOINT, b"7"),
        ("data/meta.properties", b"\xff\xff"),
    ],
)
def test_each_damaged_file_is_named(directory: SimDisk, path: str, content: bytes) -> None:
    overwrite(directory, path, content)
    assert path in [finding.path for finding in findings(directory)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_each_missing_index_is_named(directory: SimDisk, suffix: str) -> None:
    directory.remove(name(0, suffix))
    assert {finding.path for finding in findings(directory)} == {name(0, suffix)}


def test_files_left_by_a_crash_are_not_damage_if_the_next_start_rebuilds_them(directory: SimDisk) -> None:
    bases = [int(each[:20]) for each in directory.list_dir(FOLDER) if each.endswith(".log")]
    scanned = bases[2:]
    overwrite(directory, CHECKPOINT, b"0\n1\norders 0 %d\n" % (scanned[0] + 1))
    beside = [name(base, suffix) for base in scanned for suffix in (".index", ".timeindex", ".txnindex")]
    for path in beside:
        directory.remove(path)
    overwrite(directory, name(scanned[-1], ".snapshot"), b"torn")
    write_atomically(directory, epochs_path(FOLDER), LeaderEpochs([(0, 0)]).to_bytes())
    found = findings(directory)
    epochs = f"{FOLDER}/leader-epoch-checkpoint"
    assert {each.path for each in found if each.is_rebuilt_at_start} == {
        *beside,
        name(scanned[-1], ".snapshot"),
        epochs,
    }
    assert all(each.is_rebuilt_at_start for each in found)
    write_mark(directory, "data", 1)
    assert not any(each.is_rebuilt_at_start for each in findings(directory)), (
        "a clean stop leaves everything in its place"
    )


def test_files_that_a_roll_has_marked_are_rebuilt_by_the_next_start(directory: SimDisk) -> None:
    second = sorted(int(each[:20]) for each in directory.list_dir(FOLDER) if each.endswith(".log"))[1]
    make_mark(directory, FOLDER, second)
    directory.remove(name(0, ".index"))
    assert [(each.path, each.is_rebuilt_at_start) for each in findings(directory)] == [(name(0, ".index"), True)]


def test_damage_of_a_log_is_damage_after_a_crash_too(directory: SimDisk) -> None:
    directory.remove(CHECKPOINT)
    overwrite(directory, name(0), b"\xff", 100)
    assert [each.is_rebuilt_at_start for each in findings(directory) if each.path == name(0)] == [False]


def test_missing_epochs_and_metadata_are_named(directory: SimDisk) -> None:
    directory.remove(f"{FOLDER}/leader-epoch-checkpoint")
    directory.remove("data/meta.properties")
    paths = {finding.path for finding in findings(directory)}
    assert paths == {f"{FOLDER}/leader-epoch-checkpoint", "data/meta.properties"}


def test_a_torn_snapshot_and_an_index_without_a_log_are_named(directory: SimDisk) -> None:
    snapshot = next(each for each in directory.list_dir(FOLDER) if each.endswith(".snapshot"))
    directory.open(f"{FOLDER}/{snapshot}").truncate(5)
    directory.open(name(9999, ".index"), create=True)
    assert {finding.path for finding in findings(directory)} == {f"{FOLDER}/{snapshot}", name(9999, ".index")}


def test_foreign_files_are_ignored(directory: SimDisk) -> None:
    directory.open(f"{FOLDER}/notes.txt", create=True).pwritev([b"hello"], 0)
    directory.open("data/notes.txt", create=True)
    assert findings(directory) == []


def test_a_directory_in_use_or_missing_is_refused(directory: SimDisk) -> None:
    lock = directory.lock("data/.lock")
    assert lock is not None
    with pytest.raises(DataDirectoryError, match="in use"):
        findings(directory)
    lock.close()
    assert findings(directory) == []
    with pytest.raises(DataDirectoryError, match="not a directory"):
        list(verify_directory(directory, "elsewhere", lambda size: None))
