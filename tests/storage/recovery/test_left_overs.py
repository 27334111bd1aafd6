from quire.storage.log_config import LogConfig
from quire.storage.recovery.left_overs import tidy
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, batch, open_log, read_all


def put(disk: SimDisk, name: str, content: bytes | bytearray = b"") -> None:
    disk.open(f"{FOLDER}/{name}", create=True).pwritev([content], 0)


def test_deleted_and_temporary_files_are_removed(disk: SimDisk) -> None:
    put(disk, "00000000000000000000.log", batch(b"a"))
    put(disk, "00000000000000000000.index.deleted")
    put(disk, "leader-epoch-checkpoint.tmp")
    assert tidy(disk, FOLDER) == ["00000000000000000000.log"]


def test_snapshots_of_the_metadata_log_are_not_ours_to_remove(disk: SimDisk) -> None:
    put(disk, "00000000000000000100-0000000002.checkpoint.deleted")
    assert tidy(disk, FOLDER) == ["00000000000000000100-0000000002.checkpoint.deleted"]


def test_an_unfinished_compaction_is_undone(disk: SimDisk) -> None:
    put(disk, "00000000000000000000.log", batch(b"a"))
    put(disk, "00000000000000000000.log.cleaned", batch(b"half"))
    put(disk, "00000000000000000000.index.cleaned")
    put(disk, "00000000000000000007.log.swap", batch(b"of a split that never came to its end", base_offset=7))
    assert tidy(disk, FOLDER) == ["00000000000000000000.log"]
    assert read_all(open_log(disk)) == [(0, b"a")]


def test_a_finished_compaction_takes_the_place_of_what_it_replaces(disk: SimDisk) -> None:
    put(disk, "00000000000000000000.log", batch(b"old", base_offset=0))
    put(disk, "00000000000000000001.log", batch(b"old", base_offset=1))
    put(disk, "00000000000000000001.index")
    put(disk, "00000000000000000002.log", batch(b"untouched", base_offset=2))
    put(disk, "00000000000000000000.log.swap", batch(b"new", base_offset=1))
    put(disk, "00000000000000000000.index.swap")
    assert tidy(disk, FOLDER) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000002.log",
    ]
    assert read_all(open_log(disk, LogConfig(compact=True))) == [(1, b"new"), (2, b"untouched")]
