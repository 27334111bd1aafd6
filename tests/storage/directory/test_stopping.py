"""How a directory is stopped: cleanly, killed, or by a power loss; and what the next start finds."""

import errno
import logging

import pytest

from tests.storage.batches import SMALL_SEGMENTS, append, append_values, batch, values_of
from tests.storage.directory.directory_world import TOPIC_ID, World, config_of
from tests.storage.loading import load_logs


def test_the_mark_exists_only_between_a_clean_stop_and_the_next_start(world: World) -> None:
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    assert ".kafka_cleanshutdown" not in world.disk.list_dir("data")
    directory.close(broker_epoch=3)
    assert ".kafka_cleanshutdown" in world.disk.list_dir("data")
    again = world.open()
    load_logs(again, world.jobs, config_of)
    assert ".kafka_cleanshutdown" not in world.disk.list_dir("data")
    assert world.lost_power().clean_broker_epoch is None


def test_after_a_kill_logs_are_scanned_and_cut(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a", b"b")
    file = world.disk.open(f"{log.path}/{0:020d}.log")
    file.truncate(file.size() - 1)
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    assert values_of(again.logs["orders", 0]) == [b"a"]


def test_a_stop_before_the_logs_were_opened_leaves_everything_as_it_was(world: World) -> None:
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a", b"b")
    killed = world.killed()
    operations = world.disk.operations
    killed.close(broker_epoch=4)
    assert world.disk.operations == operations
    assert world.open().clean_broker_epoch is None

    world.killed().close()
    world.start().close(broker_epoch=5)
    world.open().close(broker_epoch=6)
    assert world.open().clean_broker_epoch == 5, "and a mark stays that of the run that had the logs"


def test_a_log_that_cannot_be_opened_keeps_the_mark_away_and_the_others_open(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    directory = world.start()
    for partition in range(3):
        append_values(directory.open_log("orders", partition, SMALL_SEGMENTS), b"a")
    file = world.disk.open("data/orders-1/00000000000000000000.log")
    file.pwritev([b"torn"], file.size())
    again = world.killed()
    world.disk.fail_when(lambda operation: operation.kind == "truncate", errno.ENOSPC)
    with caplog.at_level(logging.ERROR):
        load_logs(again, world.jobs, config_of)
    assert list(again.logs) == [("orders", 0), ("orders", 2)]
    assert list(again.unopened) == [("orders", 1)]
    assert "orders-1 in data cannot be opened" in caplog.text
    again.close()
    third = world.open()
    assert third.clean_broker_epoch is None
    load_logs(third, world.jobs, config_of)
    assert values_of(third.logs["orders", 1]) == [b"a"]


def test_a_clean_stop_survives_power_loss(world: World) -> None:
    directory = world.start()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    append(log, batch(b"a", producer_id=5, producer_epoch=0, sequence=0), leader_epoch=4)
    directory.close(broker_epoch=3)
    again = world.lost_power()
    assert again.clean_broker_epoch == 3
    load_logs(again, world.jobs, config_of)
    log = again.logs["orders", 0]
    assert (values_of(log), log.epochs.entries, len(log.producers())) == ([b"a"], [(4, 0)], 1)
    assert again.topic_ids["orders", 0] == TOPIC_ID


def test_flushing_before_the_stop_leaves_the_stop_little_to_do(world: World) -> None:
    directory = world.start()
    for partition in range(3):
        log = directory.open_log("orders", partition, SMALL_SEGMENTS)
        append(log, batch(b"a", producer_id=5, producer_epoch=0, sequence=0))
    told: list[str] = []
    directory.prepare_close(lambda: told.append("prepared"))
    assert told == []
    world.jobs.run_all()
    assert told == ["prepared"]
    operations = world.disk.operations
    directory.close()
    assert world.disk.operations - operations == 3 * 6, "two checkpoints and the mark, six operations each"
    again = world.lost_power()
    load_logs(again, world.jobs, config_of)
    assert [len(log.producers()) for log in again.logs.values()] == [1, 1, 1]


def test_preparing_ends_at_once_without_logs_and_when_the_disk_fails(world: World) -> None:
    directory = world.open()
    told: list[str] = []
    directory.prepare_close(lambda: told.append("prepared"))
    assert told == ["prepared"]
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    world.disk.fail_when(lambda operation: operation.kind == "sync")
    directory.prepare_close(lambda: told.append("prepared"))
    world.jobs.run_all()
    assert told == ["prepared", "prepared"]
    directory.prepare_close(lambda: told.append("prepared"))
    assert told == ["prepared"] * 3


def test_preparing_ends_also_if_a_log_is_deleted_meanwhile(world: World) -> None:
    """A node that stops follows the metadata until it closes, so a topic may be deleted while its log is flushed."""
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    directory.flush(directory.logs["orders", 0])
    append_values(directory.logs["orders", 0], b"b")
    told: list[str] = []
    directory.prepare_close(lambda: told.append("prepared"))
    directory.delete_log("orders", 0)
    assert told == [], "not within the deletion: the metadata is being applied"
    world.jobs.run_all()
    assert (told, world.failures) == (["prepared"], [])
    directory.close()


def test_no_file_stays_open(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 6)
    directory.close()
    assert world.disk.open_paths() == []
