from quire.storage.directory.clean_shutdown import read_mark, remove_mark, write_mark
from simulator.disk import SimDisk
from simulator.random import SimRandom


def test_the_mark_is_json_with_the_broker_epoch(disk: SimDisk) -> None:
    write_mark(disk, "data", 42)
    assert disk.read_file("data/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":42}'
    assert read_mark(disk, "data") == 42


def test_without_the_mark_the_stop_was_not_clean(disk: SimDisk) -> None:
    assert read_mark(disk, "data") is None


def test_a_mark_that_names_no_epoch_is_a_mark(disk: SimDisk) -> None:
    for content in (b"", b"{}", b"[]", b'{"brokerEpoch":null}'):
        write_mark(disk, "data", 42)
        file = disk.open("data/.kafka_cleanshutdown")
        file.truncate(0)
        file.pwritev([content], 0)
        assert read_mark(disk, "data") == -1


def test_a_removed_mark_does_not_return_after_power_loss(disk: SimDisk) -> None:
    write_mark(disk, "data", 42)
    remove_mark(disk, "data")
    assert read_mark(disk.crash(SimRandom(1)), "data") is None
