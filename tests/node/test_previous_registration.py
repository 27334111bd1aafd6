"""Which epoch a broker reports when it starts: that of its last registration only if nothing can be lost."""

from collections.abc import Callable
from itertools import count

import pytest

from quire.node.broker_lifecycle import NO_EPOCH
from quire.node.partitions import opening
from quire.storage.directory.registration_mark import FILE_NAME
from simulator.disk import Crashed, DiskCall, SimDisk
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_data_directories import TWO, directory_of
from tests.node.test_node import produce

Spoil = Callable[[SimDisk], object]


def epoch_of(node: SimulatedNode) -> int:
    assert node.node.broker is not None
    return node.node.broker.epoch


def reported(disk: SimDisk, settings: dict[str, str] = TWO, seed: int = 2) -> int:
    """The epoch that a node reports when it starts on this disk."""
    again = SimulatedNode(disk, settings, seed).start()
    assert again.node.broker is not None
    return again.node.broker._registration.previous_broker_epoch


def used(settings: dict[str, str] = TWO) -> SimulatedNode:
    """A node with records in every directory."""
    node = SimulatedNode(settings=settings).start()
    for topic in "ab":
        node.create_topic(topic)
        assert produce(node, topic) == 0
    return node


def test_after_a_kill_and_after_a_clean_stop_it_is_that_of_the_last_registration() -> None:
    killed = used()
    assert reported(killed.disk.kill()) == epoch_of(killed)
    stopped = used()
    assert reported(stopped.stop()) == epoch_of(stopped)


def test_a_second_kill_is_like_the_first() -> None:
    first = used()
    second = SimulatedNode(first.disk.kill(), TWO, seed=2).start()
    assert epoch_of(second) > epoch_of(first)
    assert reported(second.disk.kill(), seed=3) == epoch_of(second)


def test_a_directory_without_logs_keeps_the_mark_of_an_earlier_clean_stop_and_says_nothing_by_it() -> None:
    first = SimulatedNode(settings=TWO).start()
    first.create_topic("a")
    second = SimulatedNode(first.stop(), TWO, seed=2).start()
    assert [each.clean_broker_epoch for each in second.node.directories if not each.logs] == [epoch_of(first)]
    assert reported(second.disk.kill(), seed=3) == epoch_of(second)


def test_after_a_power_loss_nothing_is_promised() -> None:
    assert reported(used().disk.crash(SimRandom(1))) == NO_EPOCH


def test_a_power_loss_after_a_clean_stop_does_no_harm() -> None:
    node = used()
    assert reported(node.stop().crash(SimRandom(1))) == epoch_of(node)


def empty(disk: SimDisk) -> None:
    for name in disk.list_dir("/two"):
        path = f"/two/{name}"
        if disk.is_dir(path):
            disk.remove_tree(path)
        else:
            disk.remove(path)


def older_registration(disk: SimDisk) -> None:
    path = f"/two/{FILE_NAME}"
    content = disk.read_file(path).replace(b'"brokerEpoch":', b'"brokerEpoch":1')
    file = disk.open(path)
    file.pwritev([content], 0)


def log_damaged(disk: SimDisk) -> None:
    (folder,) = [name for name in disk.list_dir("/two") if name in ("a-0", "b-0")]
    file = disk.open(f"/two/{folder}/{0:020d}.log")
    file.pwritev([b"\xff"], file.size() - 1)


@pytest.mark.parametrize(
    "spoil",
    [empty, lambda disk: disk.remove(f"/two/{FILE_NAME}"), older_registration, log_damaged],
    ids=["emptied", "no mark", "another registration", "a damaged log"],
)
def test_one_directory_that_may_have_lost_something_is_enough(spoil: Spoil) -> None:
    disk = used().disk.kill()
    spoil(disk)
    assert reported(disk) == NO_EPOCH


def log_cut(disk: SimDisk) -> None:
    (folder,) = [name for name in disk.list_dir("/two") if name in ("a-0", "b-0")]
    file = disk.open(f"/two/{folder}/{0:020d}.log")
    file.truncate(file.size() - 1)


def test_records_that_are_gone_since_a_clean_stop_are_enough() -> None:
    disk = used().stop()
    log_cut(disk)
    assert reported(disk) == NO_EPOCH


def test_a_folder_that_is_missing_costs_the_place_of_its_replica_alone(caplog: pytest.LogCaptureFixture) -> None:
    node = used()
    (lost,) = [name for name in node.disk.list_dir("/two") if name in ("a-0", "b-0")]
    disk = node.disk.kill()
    disk.remove_tree(f"/two/{lost}")
    again = SimulatedNode(disk, TWO, seed=2).start()
    assert epoch_of(again) > epoch_of(node)
    run_until_leading(again, "ab")
    unclean = [message for message in caplog.messages if message.startswith("leader elected unclean")]
    assert [message.split()[3] for message in unclean] == [f"partition={lost}"]
    assert produce(again, "a") == produce(again, "b") == 0


def test_a_kill_before_the_log_of_a_new_partition_is_created_costs_no_other_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = SimulatedNode().start()
    node.create_topic("a")
    assert produce(node, "a") == 0
    partitions = 10 * opening.LOGS_PER_TURN
    node.create_topic("b", partitions=partitions)
    disk = node.disk.kill()
    assert len([name for name in disk.list_dir("/data") if name.startswith("b-")]) < partitions
    again = SimulatedNode(disk, seed=2).start()
    assert reported(again.disk.kill(), {}, seed=3) == epoch_of(again)
    again.clock.run_until(lambda: all(leads(again, "b", index) for index in range(partitions)))
    assert not [message for message in caplog.messages if "unclean" in message and "partition=a-0" in message]


def run_until_leading(node: SimulatedNode, topics: str) -> None:
    node.clock.run_until(lambda: all(leads(node, topic) for topic in topics))


def leads(node: SimulatedNode, topic: str, index: int = 0) -> bool:
    found = {partition.index: partition for partition in node.node.partitions.of_topic(topic)}
    return index in found and found[index].leader is not None


@pytest.mark.parametrize("stopped_cleanly", [False, True])
@pytest.mark.parametrize("power_lost", [False, True])
def test_a_start_that_is_killed_at_any_step_loses_nothing(
    stopped_cleanly: bool, power_lost: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Above all while it registers: the controller may know the new epoch, and the directories not yet."""
    if power_lost and not stopped_cleanly:
        return
    for step in count(1):
        node = used()
        disk = node.stop() if stopped_cleanly else node.disk.kill()
        if power_lost:
            disk = disk.crash(SimRandom(step))
        disk.calls.crash_at = disk.operations + step
        started = SimulatedNode(disk, TWO, seed=2)
        try:
            started.start()
        except Crashed:
            again = SimulatedNode(disk.kill(), TWO, seed=3).start()
            run_until_leading(again, "ab")
            assert not [message for message in caplog.messages if "unclean" in message], f"killed at step {step}"
        else:
            break
    assert step > 10


def test_a_directory_without_logs_does_not_go_back_to_an_earlier_clean_stop() -> None:
    node = SimulatedNode(settings=TWO).start()
    node.create_topic("a")
    again = SimulatedNode(node.stop(), TWO, seed=2).start()
    assert produce(again, "a") == 0
    assert reported(again.disk.kill(), seed=3) == epoch_of(again)


def test_an_append_that_was_never_finished_is_no_loss() -> None:
    node = used()
    disk = node.disk.kill()
    log = f"{directory_of(node, 'b')}/b-0/{0:020d}.log"
    file = disk.open(log)
    batch = file.pread(file.size(), 0)
    file.pwritev([batch[:-1]], file.size())
    assert reported(disk) == epoch_of(node)


def test_a_start_that_is_killed_after_it_cut_a_damaged_log_does_not_hide_that() -> None:
    disk = used().disk.kill()
    log_damaged(disk)
    started = SimulatedNode(disk, TWO, seed=2)
    started.node.start()
    started.clock.run_until(lambda: bool(started.node.partitions.directories()[1].logs))
    assert reported(disk.kill(), seed=3) == NO_EPOCH


@pytest.mark.parametrize("ends", [lambda node: node.disk.kill(), SimulatedNode.stop], ids=["killed", "stopped"])
def test_a_directory_that_fails_takes_the_promise_with_it_although_it_works_again(
    ends: Callable[[SimulatedNode], SimDisk],
) -> None:
    node = used()
    directory = next(each for each in node.node.directories if each.path == "/two")

    def removal(call: DiskCall) -> bool:
        return call.kind == "remove" and call.path.startswith("/two")

    node.disk.fail_when(removal, times=5)
    directory.fail(OSError(5, "Input/output error"))
    assert node.disk.exists(f"/two/{FILE_NAME}")
    assert reported(ends(node)) == NO_EPOCH
