"""The logs of a data directory: they are found after a restart and identified by topic id, and their start can be
moved."""

import logging

import pytest

from quire.protocol.errors import ApiError
from quire.storage.log_config import LogConfig
from tests.storage.batches import SMALL_SEGMENTS, append_values, values_of
from tests.storage.directory.directory_world import TOPIC_ID, World, config_of
from tests.storage.loading import load_logs


def test_logs_and_their_topic_ids_are_found_again(world: World) -> None:
    directory = world.start()
    for partition in range(3):
        log = directory.open_log("orders", partition, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        append_values(log, b"a", bytes([partition]))
    directory.close(broker_epoch=12)
    again = world.open()
    assert again.clean_broker_epoch == 12
    load_logs(again, world.jobs, config_of)
    assert list(again.logs) == [("orders", 0), ("orders", 1), ("orders", 2)]
    assert again.topic_ids[("orders", 1)] == TOPIC_ID
    assert values_of(again.logs["orders", 2]) == [b"a", b"\x02"]


def test_opening_an_open_log_gives_the_same_one(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    assert directory.open_log("orders", 0, LogConfig()) is log


def test_a_missing_topic_id_is_written_when_it_is_known(world: World) -> None:
    directory = world.open()
    directory.open_log("orders", 0, SMALL_SEGMENTS)
    assert directory.topic_ids["orders", 0] is None
    again = world.killed()
    again.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    assert again.topic_ids["orders", 0] == TOPIC_ID
    third = world.killed()
    with pytest.raises(ApiError, match="another topic"):
        third.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes(16))
    assert third.topic_ids["orders", 0] == TOPIC_ID, "a folder does not change hands"


def test_a_lost_topic_id_is_written_again_when_the_log_is_open_already(world: World) -> None:
    directory = world.start()
    directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    directory.close()
    world.disk.remove("data/orders-0/partition.metadata")
    again = world.start()
    assert again.topic_ids["orders", 0] is None
    again.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    again.close()
    assert world.lost_power().open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    assert world.disk.exists("data/orders-0/partition.metadata")


def test_the_metadata_log_is_left_to_its_owner(world: World) -> None:
    directory = world.open()
    directory.open_log("__cluster_metadata", 0, SMALL_SEGMENTS)
    directory.open_log("orders", 0, SMALL_SEGMENTS)
    directory.close()
    again = world.open()
    load_logs(again, world.jobs, config_of)
    assert list(again.logs) == [("orders", 0)]


def test_other_folders_and_files_are_not_touched(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.disk.make_dirs("data/lost+found")
    world.disk.open("data/notes.txt", create=True)
    directory = world.open()
    with caplog.at_level(logging.WARNING):
        load_logs(directory, world.jobs, config_of)
    assert "lost+found" in caplog.text and "notes.txt" not in caplog.text
    world.jobs.run_all()
    directory.close()
    assert {"lost+found", "notes.txt"} < set(world.disk.list_dir("data"))


def test_a_log_starts_later_only_when_no_crash_can_take_that_back(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a", b"b", b"c")
    log.flush()
    done: list[int] = []
    directory.delete_records("orders", 0, 2, lambda: done.append(log.start_offset))
    directory.delete_records("orders", 0, 1, lambda: done.append(log.start_offset))
    assert (log.start_offset, done) == (0, [])
    world.jobs.run_all()
    assert done == [2, 2]
    assert world.lost_power().open_log("orders", 0, SMALL_SEGMENTS).start_offset == 2


def test_a_log_that_cannot_be_cut_takes_its_directory_offline(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 6)
    world.disk.fail_when(lambda operation: operation.kind == "rename" and operation.path.endswith(".log"))
    directory.delete_records("orders", 0, 5, lambda: pytest.fail("nothing was deleted"))
    world.jobs.run_all()
    assert len(world.failures) == 1
