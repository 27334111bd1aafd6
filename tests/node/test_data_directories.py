"""Several data directories: partitions are spread over them, and each fails, fills up and recovers alone."""

import errno
import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from quire.seams.disk import write_atomically
from quire.storage.errors import DataDirectoryError
from simulator.disk import DiskCall, SimDisk
from tests.node.conftest import SimulatedNode
from tests.node.test_node import produce, values_of

TWO = {"log.dirs": "/one,/two"}
THREE = {"log.dirs": "/one,/two,/three"}


def directory_of(node: SimulatedNode, topic: str, index: int = 0) -> str:
    return node.node.partitions.leader(topic, None, index).log.path.rpartition("/")[0]


def described(node: SimulatedNode) -> dict[str, tuple[ErrorCode, int]]:
    """The result of DescribeLogDirs for each directory: its error and its number of partitions."""
    answer = node.call(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    assert answer.error_code == 0
    return {
        found.log_dir: (ErrorCode(found.error_code), sum(len(topic.partitions) for topic in found.topics))
        for found in answer.results
    }


def two_topics() -> tuple[SimulatedNode, str, str]:
    """A node with a topic in each of two directories; the name of the one in /one and of the one in /two."""
    node = SimulatedNode(settings=TWO).start()
    node.create_topic("a")
    node.create_topic("b")
    first, second = sorted("ab", key=lambda topic: directory_of(node, topic) == "/two")
    assert (directory_of(node, first), directory_of(node, second)) == ("/one", "/two")
    assert (produce(node, first), produce(node, second)) == (0, 0)
    return node, first, second


def test_partitions_are_spread_by_count_also_after_a_restart_and_after_deletions() -> None:
    node = SimulatedNode(settings=THREE).start()
    node.create_topic("many", partitions=7)
    assert sorted(count for _, count in described(node).values()) == [2, 2, 3]
    again = SimulatedNode(node.stop(), THREE, seed=2).start()
    again.create_topic("more", partitions=2)
    assert described(again) == dict.fromkeys(["/one", "/two", "/three"], (ErrorCode.NONE, 3))
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="many")])
    assert again.call(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    again.create_topic("others", partitions=4)
    assert described(again) == dict.fromkeys(["/one", "/two", "/three"], (ErrorCode.NONE, 2))


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
@pytest.mark.parametrize("kind", ["write", "sync", "create"])
def test_a_directory_that_fails_goes_offline_alone(kind: str, code: int, caplog: pytest.LogCaptureFixture) -> None:
    """Broken or suddenly read-only, whichever call fails first."""
    node, first, second = two_topics()
    node.disk.fail_when(lambda operation: operation.path.startswith("/two/") and operation.kind == kind, code, times=99)
    partition = node.node.partitions.leader(second, None, 0).partition
    with caplog.at_level(logging.ERROR):
        error = produce(node, second)
        assert error == (ErrorCode.KAFKA_STORAGE_ERROR if kind == "write" else 0)
        if kind != "write":
            partition.log.roll(node.clock.now_ms()) if kind == "sync" else node.create_topic("c", partitions=2)
            node.clock.run_for(100)
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert described(node)["/two"] == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert described(node)["/one"][0] is ErrorCode.NONE
    assert produce(node, first) == 0
    assert values_of(node, first) == [b"v", b"v"]
    assert len([line for line in caplog.messages if line.startswith("the data directory /two is offline")]) == 1
    node.create_topic("new", partitions=2)
    assert {directory_of(node, "new", index) for index in range(2)} == {"/one"}
    assert node.failures == []


def test_a_directory_that_is_removed_is_offline_after_the_next_checkpoint_of_high_watermarks() -> None:
    node, first, second = two_topics()
    node.disk.remove_tree("/two")
    assert produce(node, second) == 0, "its files are open, and take what is written to them"
    node.clock.run_for(5_000 + 100)
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert described(node)["/two"] == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert (produce(node, first), values_of(node, first)) == (0, [b"v", b"v"])


def test_one_full_disk_of_two_is_reported_to_its_writers_and_serves_again_by_itself() -> None:
    node, first, second = two_topics()
    room: list[str] = []

    def is_full(operation: DiskCall) -> bool:
        return operation.path.startswith("/two/") and operation.kind in ("write", "create") and not room

    node.disk.fail_when(is_full, errno.ENOSPC, times=1 << 30)
    assert [produce(node, second) for _ in range(3)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert values_of(node, second) == [b"v"], "it can be read all the time"
    assert produce(node, first) == 0
    node.clock.run_for(120_000)
    assert described(node)["/two"] == (ErrorCode.NONE, 1), "a disk without room is not offline"
    room.append("again")
    assert produce(node, second) == 0
    assert values_of(node, second) == [b"v", b"v"]
    again = SimulatedNode(node.stop(), TWO, seed=2).start()
    assert values_of(again, second) == [b"v", b"v"]


def test_a_directory_that_cannot_be_opened_at_the_start_is_offline_and_the_others_serve() -> None:
    node, first, second = two_topics()
    disk = node.stop()
    disk.fail_when(lambda operation: operation.path.startswith("/two"), errno.EIO, times=1 << 30)
    again = SimulatedNode(disk, TWO, seed=2).start()
    assert described(again) == {"/one": (ErrorCode.NONE, 1), "/two": (ErrorCode.KAFKA_STORAGE_ERROR, 0)}
    assert produce(again, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert (produce(again, first), values_of(again, first)) == (0, [b"v", b"v"])
    growing = CreatePartitionsTopic(name=second, count=2, assignments=None)
    again.call(CreatePartitionsRequest(topics=[growing], timeout_ms=1000), 3, CreatePartitionsResponse)
    again.clock.run_for(120_000)
    assert produce(again, second) == ErrorCode.KAFKA_STORAGE_ERROR, "no empty log takes its place"
    assert directory_of(again, second, 1) == "/one"

    healed = again.stop()
    healed.calls.forget_faults()
    third = SimulatedNode(healed, TWO, seed=3).start()
    assert (values_of(third, second), directory_of(third, second)) == ([b"v"], "/two")


def test_a_directory_whose_names_cannot_be_read_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def list_dir(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    disk = SimDisk()
    monkeypatch.setattr(disk, "list_dir", list_dir)
    with pytest.raises(DataDirectoryError, match=r"\(Permission denied\); make it readable and writable"):
        SimulatedNode(disk, {"log.dirs": "/one"}).start()


def test_without_the_metadata_log_or_any_directory_a_node_does_not_start() -> None:
    node, _, _ = two_topics()
    disk = node.stop()
    disk.fail_when(lambda operation: operation.path.startswith("/one"), errno.EIO, times=1 << 30)
    with pytest.raises(DataDirectoryError, match="/one cannot be used as a data directory"):
        SimulatedNode(disk, TWO, seed=2).start()
    assert disk.open_paths() == []

    apart = {"log.dirs": "/three,/four", "metadata.log.dir": "/meta"}
    disk = SimDisk()
    disk.fail_when(lambda operation: operation.path.startswith(("/three", "/four")), errno.EROFS, times=1 << 30)
    with pytest.raises(DataDirectoryError, match="no data directory can be used"):
        SimulatedNode(disk, apart, seed=2).start()
    assert disk.open_paths() == []


def test_a_disk_that_cannot_even_say_how_full_it_is_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    node, first, second = two_topics()
    asked = SimDisk.total_bytes

    def fails(self: SimDisk, path: str) -> int:
        if path == "/two":
            raise OSError(errno.EIO, "Input/output error", path)
        return asked(self, path)

    monkeypatch.setattr(SimDisk, "total_bytes", fails)
    assert described(node) == {"/one": (ErrorCode.NONE, 1), "/two": (ErrorCode.KAFKA_STORAGE_ERROR, 0)}
    assert (produce(node, first), produce(node, second)) == (0, ErrorCode.KAFKA_STORAGE_ERROR)


def test_an_empty_directory_in_place_of_one_with_data_gets_no_empty_logs(caplog: pytest.LogCaptureFixture) -> None:
    node, first, second = two_topics()
    disk = node.stop()
    disk.rename("/two", "/unmounted")
    without = SimulatedNode(disk, TWO, seed=2).start()
    assert "/two was empty, and 1 partitions" in caplog.text
    assert (produce(without, first), produce(without, second)) == (0, ErrorCode.KAFKA_STORAGE_ERROR)
    disk = without.stop()
    disk.remove_tree("/two")
    disk.rename("/unmounted", "/two")
    again = SimulatedNode(disk, TWO, seed=3).start()
    assert (values_of(again, first), values_of(again, second)) == ([b"v", b"v"], [b"v"])


def test_a_directory_that_is_added_is_used() -> None:
    node, first, second = two_topics()
    again = SimulatedNode(node.stop(), THREE, seed=2).start()
    assert (produce(again, first), produce(again, second)) == (0, 0)
    again.create_topic("new")
    assert directory_of(again, "new") == "/three"


def copy_log(disk: SimDisk, source: str, target: str) -> None:
    disk.make_dirs(target)
    for name in disk.list_dir(source):
        write_atomically(disk, f"{target}/{name}", disk.read_file(f"{source}/{name}"))


def test_a_node_does_not_guess_which_of_two_logs_of_a_partition_is_right() -> None:
    """For example, a copy on another disk that an operator forgot to remove."""
    node, first, _ = two_topics()
    disk = node.stop()
    copy_log(disk, f"/one/{first}-0", f"/two/{first}-0")
    again = SimulatedNode(disk, TWO, seed=2)
    again.node.start()
    again.clock.run_for(1000)
    (failure,) = again.failures
    assert f"{first}-0 is both in /one and in /two" in failure
    disk = again.stop()
    disk.remove_tree(f"/two/{first}-0")
    assert values_of(SimulatedNode(disk, TWO, seed=3).start(), first) == [b"v"]


def test_of_two_logs_of_different_topics_the_one_of_the_deleted_topic_is_set_aside() -> None:
    node, first, second = two_topics()
    disk = node.stop()
    copy_log(disk, f"/one/{first}-0", f"/two/{first}-0")
    copy_log(disk, f"/two/{second}-0", f"/one/{second}-0")
    other = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEQ"
    write_atomically(disk, f"/two/{first}-0/partition.metadata", other)
    write_atomically(disk, f"/one/{second}-0/partition.metadata", other)
    again = SimulatedNode(disk, TWO, seed=2).start()
    assert (values_of(again, first), values_of(again, second)) == ([b"v"], [b"v"])
    assert described(again) == dict.fromkeys(["/one", "/two"], (ErrorCode.NONE, 1))
    assert [name for name in again.disk.list_dir("/one") if name.endswith("-stray")] != []
    assert [name for name in again.disk.list_dir("/two") if name.endswith("-stray")] != []


def test_a_log_that_lost_its_topic_id_in_a_power_loss_is_used_beside_one_of_a_deleted_topic() -> None:
    """The topic was deleted and created again while the directory with the older log was offline."""
    node, first, _ = two_topics()
    disk = node.stop()
    copy_log(disk, f"/one/{first}-0", f"/two/{first}-0")
    write_atomically(disk, f"/two/{first}-0/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEQ")
    write_atomically(disk, f"/one/{first}-0/partition.metadata", b"")
    again = SimulatedNode(disk, TWO, seed=2).start()
    assert values_of(again, first) == [b"v"]
    assert [name for name in again.disk.list_dir("/two") if name.endswith("-stray")] != []


def test_a_node_does_not_create_a_second_metadata_log_when_the_first_is_missing() -> None:
    disk = two_topics()[0].stop()
    disk.rename("/one", "/unmounted")
    with pytest.raises(DataDirectoryError, match="/one should hold the metadata log and is empty"):
        SimulatedNode(disk, TWO, seed=2).start()
    assert disk.open_paths() == []
