"""A snapshot of the metadata that is damaged or too new: the node says what to do, and the cluster continues."""

import logging

import pytest

from quire.raft.errors import MetadataLogError
from quire.raft.log_store import FOLDER
from quire.raft.log_summary import LogPosition
from quire.raft.snapshot_file import file_name, parse_name
from simulator.disk import SimDisk
from tests.node.conftest import SimulatedNode
from tests.node.sim_cluster import SimCluster
from tests.node.test_quorum import setting, started, write
from tests.raft.future_snapshots import OF_THE_FUTURE, future_snapshot

PATH = f"/data/{FOLDER}"
SMALL_LOG = {"metadata.log.max.record.bytes.between.snapshots": "500", "metadata.max.retention.bytes": "1000"}


def replace_file(disk: SimDisk, name: str, content: bytes) -> None:
    file = disk.open(f"{PATH}/{name}", create=True)
    file.truncate(0)
    file.pwritev([content], 0)
    file.sync()
    file.close()
    disk.sync_dir(PATH)


def files(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_file(f"{PATH}/{name}") for name in disk.list_dir(PATH)}


class LateFollower:
    """A follower that must begin with a snapshot of the leader, before the network lets it."""

    def __init__(self) -> None:
        self.cluster = started(SMALL_LOG)
        (self.leader,) = self.cluster.active
        self.id = self.leader % 3 + 1
        for other in (1, 2, 3):
            if other != self.id:
                self.cluster.network.cut(f"node-{self.id}", f"node-{other}")
        log = self.cluster[self.leader].metadata.log
        behind = self.cluster[self.id].metadata.log.next_offset
        number = 0
        while log.start_offset <= behind:
            number += 1
            write(self.cluster, str(number))
            self.cluster.clock.run_for(50)
        self.last_value = str(number)

    @property
    def disk(self) -> SimDisk:
        return self.cluster.members[self.id].disk

    @property
    def failures(self) -> list[str]:
        return self.cluster.members[self.id].failures

    @property
    def leaders_disk(self) -> SimDisk:
        return self.cluster.members[self.leader].disk

    def leaders_snapshots(self) -> dict[str, bytes]:
        return {name: content for name, content in files(self.leaders_disk).items() if parse_name(name)}


def goes_on(cluster: SimCluster, without: int) -> bool:
    write(cluster, "4711")
    cluster.until(lambda: all(setting(cluster, id_) == "4711" for id_ in (1, 2, 3) if id_ != without))
    return True


@pytest.mark.parametrize("complaint", OF_THE_FUTURE)
def test_a_leaders_snapshot_from_the_future_ends_the_node_with_one_sentence(complaint: str) -> None:
    late = LateFollower()
    before = files(late.disk)
    for name in late.leaders_snapshots():
        replace_file(late.leaders_disk, name, future_snapshot(OF_THE_FUTURE[complaint]))
    late.cluster.network.heal()
    late.cluster.until(lambda: bool(late.failures))
    (failure,) = late.failures
    assert complaint in failure and "upgrade this node" in failure
    left = files(late.disk)
    if "level" in complaint:
        assert any(parse_name(name) for name in left.keys() - before.keys()), "an upgraded node reads it"
    else:
        assert {name: left.get(name) for name in before if name != "quorum-state"} == {
            name: content for name, content in before.items() if name != "quorum-state"
        }
    assert not any(name.endswith(".part") for name in left)
    assert goes_on(late.cluster, late.id)


def test_a_leaders_snapshot_with_a_bad_crc_is_refused_until_it_is_whole(caplog: pytest.LogCaptureFixture) -> None:
    late = LateFollower()
    whole = late.leaders_snapshots()
    for name, content in whole.items():
        replace_file(late.leaders_disk, name, content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with caplog.at_level(logging.WARNING, "quire.raft"):
        late.cluster.network.heal()
        late.cluster.until(lambda: "metadata snapshot not fetched" in caplog.text)
        late.cluster.clock.run_for(2_000)
    lines = [line for line in caplog.messages if "metadata snapshot not fetched" in line]
    assert len(lines) == 1 and "is damaged" in lines[0] and f"leader={late.leader}" in lines[0]
    assert goes_on(late.cluster, late.id)
    for name, content in whole.items():
        replace_file(late.leaders_disk, name, content)
    late.cluster.until(lambda: setting(late.cluster, late.id) == "4711")
    assert late.failures == []


@pytest.mark.parametrize("complaint", OF_THE_FUTURE)
def test_a_snapshot_from_the_future_on_disk_is_refused_at_the_start_and_nothing_is_changed(complaint: str) -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    offset = node.node.metadata.log.high_watermark
    disk = node.stop()
    name = file_name(LogPosition(1, offset))
    replace_file(disk, name, future_snapshot(OF_THE_FUTURE[complaint]))
    before = files(disk)
    with pytest.raises(MetadataLogError, match=complaint) as caught:
        SimulatedNode(disk).node.start()
    assert "upgrade this node" in str(caught.value)
    assert files(disk) == before
    disk = disk.kill()
    disk.remove(f"{PATH}/{name}")
    again = SimulatedNode(disk).start()
    assert again.node.image.topic("t") is not None


def test_a_snapshot_with_a_bad_crc_on_disk_is_passed_over_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    offset = node.node.metadata.log.high_watermark
    disk = node.stop()
    damaged = bytearray(future_snapshot(b""))
    damaged[-1] ^= 1
    replace_file(disk, file_name(LogPosition(1, offset)), bytes(damaged))
    again = SimulatedNode(disk).start()
    assert again.node.image.topic("t") is not None
    (line,) = [each for each in caplog.messages if "snapshot skipped" in each]
    assert file_name(LogPosition(1, offset)) in line and "is damaged" in line
