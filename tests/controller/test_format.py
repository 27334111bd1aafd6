"""Formatting, byte for byte what Apache Kafka 4.3.1's StorageTool writes.

`golden/kafka_formatted` was written by `StorageTool format --standalone`; only the clock is different here.
"""

from pathlib import Path
from struct import unpack_from

import pytest

from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_directory, format_node, unfinished_formatting
from quire.metadata.features import UnsupportedMetadataError
from quire.protocol import uuids
from quire.protocol.messages.metadata_records import FeatureLevelRecord
from quire.raft.control_state import NO_VOTERS
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.snapshot_file import read_snapshot
from quire.storage.directory.meta_properties import MetaProperties, read_meta
from quire.storage.errors import DataDirectoryError
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom

GOLDEN = Path(__file__).parent / "golden" / "kafka_formatted"
VOTERS = "00000000000000000000-0000000000.checkpoint"
META = MetaProperties("AAAAAAAAAAAAAAAAAAAAEg", 1, uuids.from_text("1PZZx6MVSJGpCQxfkgsKvQ"))
KAFKAS_LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def without_clock(content: bytes, header_timestamp_at: int | None = None) -> bytes:
    """The batches with checksums and timestamps blanked."""
    blank = bytearray(content)
    if header_timestamp_at is not None:
        blank[header_timestamp_at : header_timestamp_at + 8] = bytes(8)
    position = 0
    while position < len(blank):
        (length,) = unpack_from(">i", blank, position + 8)
        blank[position + 17 : position + 21] = bytes(4)
        blank[position + 27 : position + 43] = bytes(16)
        position += length + 12
    return bytes(blank)


def test_the_files_are_kafkas() -> None:
    disk = SimDisk()
    voter = Voter(ReplicaKey(1, META.directory_id), (Endpoint("CONTROLLER", "127.0.0.1", 39093),))
    format_directory(disk, "/data", META, now_ms=1, levels=KAFKAS_LEVELS, voters=VoterSet([voter]))
    bootstrap = disk.read_file("/data/bootstrap.checkpoint")
    assert without_clock(bootstrap) == without_clock((GOLDEN / "bootstrap.checkpoint").read_bytes())
    voters = disk.read_file(f"/data/__cluster_metadata-0/{VOTERS}")
    assert without_clock(voters, 73) == without_clock((GOLDEN / VOTERS).read_bytes(), 73)
    assert read_meta(disk, "/data") == META


def test_a_node_is_formatted_by_its_configuration() -> None:
    disk, random = SimDisk(), SimRandom(1)
    config = BrokerConfig.standalone({"log.dirs": "/one,/two", "metadata.log.dir": "/two"})
    cluster_id = format_node(disk, random, config, now_ms=1)
    one, two = read_meta(disk, "/one"), read_meta(disk, "/two")
    assert one is not None and two is not None
    assert one.cluster_id == two.cluster_id == cluster_id
    assert one.directory_id != two.directory_id
    assert disk.exists(f"/two/__cluster_metadata-0/{VOTERS}")
    assert not disk.exists("/one/__cluster_metadata-0")
    bootstrap = read_snapshot(disk, "/two", "bootstrap.checkpoint")
    assert bootstrap.records == [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]


def test_what_is_formatted_is_left_alone() -> None:
    disk, random = SimDisk(), SimRandom(1)
    config = BrokerConfig.standalone({"log.dirs": "/one"})
    cluster_id = format_node(disk, random, config, now_ms=1)
    before = disk.read_file("/one/meta.properties")
    both = BrokerConfig.standalone({"log.dirs": "/one,/two"})
    assert format_node(disk, random, both, now_ms=2) == cluster_id
    assert disk.read_file("/one/meta.properties") == before
    two = read_meta(disk, "/two")
    assert two is not None and two.cluster_id == cluster_id


def test_a_static_quorum_is_not_written_into_the_directory() -> None:
    disk = SimDisk()
    config = BrokerConfig.standalone(
        {"log.dirs": "/one", "controller.quorum.voters": "1@localhost:9093", "node.id": "1"}
    )
    format_node(disk, SimRandom(1), config, now_ms=1)
    assert not disk.exists("/one/__cluster_metadata-0")


def test_levels_nobody_knows_are_not_written() -> None:
    with pytest.raises(UnsupportedMetadataError, match=r"group\.version at level 9"):
        format_directory(SimDisk(), "/data", META, now_ms=1, levels={"metadata.version": 30, "group.version": 9})


def test_a_metadata_log_without_its_owner_is_data() -> None:
    disk = SimDisk()
    format_node(disk, SimRandom(1), BrokerConfig.standalone({"log.dirs": "/data"}), now_ms=1)
    assert "__cluster_metadata-0" in unfinished_formatting(disk, "/data")
    disk.open("/data/__cluster_metadata-0/00000000000000000000.log", create=True)
    assert "__cluster_metadata-0" not in unfinished_formatting(disk, "/data")


def test_what_is_not_of_a_data_directory_keeps_all_from_being_formatted() -> None:
    disk = SimDisk()
    config = BrokerConfig.standalone({"log.dirs": "/one,/two"})
    for name in ("lost+found/x", "orders-0/x", f"orders-1.{'0' * 32}-delete/x", f"orders-1.{'0' * 32}-future/x"):
        disk.make_dirs(f"/two/{name}")
    for name in (".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint.tmp", "bootstrap.checkpoint.part"):
        disk.open(f"/two/{name}", create=True)
    disk.open("/two/notes.txt", create=True)
    with pytest.raises(DataDirectoryError, match=r"/two contains notes\.txt"):
        format_node(disk, SimRandom(1), config, now_ms=1)
    assert not disk.exists("/one") and read_meta(disk, "/two") is None
    disk.remove("/two/notes.txt")
    format_node(disk, SimRandom(1), config, now_ms=1)
    assert read_meta(disk, "/two") is not None


def test_a_directory_that_lost_its_metadata_stays_the_voter_that_it_was() -> None:
    disk = SimDisk()
    config = BrokerConfig.standalone({"log.dirs": "/data"})
    cluster_id = format_node(disk, SimRandom(1), config, now_ms=1)
    disk.open("/data/__cluster_metadata-0/00000000000000000000.log", create=True)
    before = disk.read_file("/data/meta.properties")
    disk.remove("/data/meta.properties")
    other = BrokerConfig.standalone({"log.dirs": "/data", "node.id": "2"})
    with pytest.raises(DataDirectoryError, match=r"metadata log of node 1; set node\.id=1"):
        format_node(disk, SimRandom(2), other, now_ms=2, cluster_id=cluster_id)
    format_node(disk, SimRandom(2), config, now_ms=2, cluster_id=cluster_id)
    assert disk.read_file("/data/meta.properties") == before


def test_a_crash_leaves_a_directory_that_can_be_formatted_again() -> None:
    config = BrokerConfig.standalone({"log.dirs": "/data"})
    for number in range(1, 100):
        random = SimRandom(number)
        disk = SimDisk(random.stream("disk"), crash_at=number)
        try:
            format_node(disk, random, config, now_ms=1)
        except Crashed:
            after = disk.crash(random)
            if read_meta(after, "/data") is None and after.is_dir("/data"):
                assert set(after.list_dir("/data")) <= set(unfinished_formatting(after, "/data"))
            format_node(after, random, config, now_ms=2)
            meta = read_meta(after, "/data")
            assert meta is not None
            voters = read_snapshot(after, "/data/__cluster_metadata-0", VOTERS).control.voters
            assert voters is not None and [voter.key.directory_id for voter in voters] == [meta.directory_id]
            read_snapshot(after, "/data", "bootstrap.checkpoint")
        else:
            assert number > 10
            return
    raise AssertionError("it never finished")


def test_what_was_formatted_is_there_after_a_power_loss_with_all_folders_above_it() -> None:
    for seed in range(10):
        disk = SimDisk()
        format_directory(disk, "/new/folder/data", META, now_ms=1)
        left = disk.crash(SimRandom(seed))
        assert left.exists("/new/folder/data/meta.properties"), f"seed {seed}"
        assert read_meta(left, "/new/folder/data") == META


CLUSTER = {
    "log.dirs": "/data",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "host-1:9093,host-2:9093",
}


def test_a_first_voter_gets_all_of_them_and_the_directory_id_that_they_name() -> None:
    voters = VoterSet(
        Voter(ReplicaKey(id_, bytes([id_] * 16)), (Endpoint("CONTROLLER", f"host-{id_}", 9093),)) for id_ in (1, 2)
    )
    for node_id in (1, 2):
        disk, config = SimDisk(), BrokerConfig({**CLUSTER, "node.id": str(node_id)})
        format_node(disk, SimRandom(1), config, now_ms=1, cluster_id=META.cluster_id, initial_voters=voters)
        assert read_meta(disk, "/data") == MetaProperties(META.cluster_id, node_id, bytes([node_id] * 16))
        written = read_snapshot(disk, "/data/__cluster_metadata-0", VOTERS).control
        assert (written.kraft_version, written.voters) == (1, voters)


def test_a_node_that_is_not_one_of_the_first_voters_gets_no_voters() -> None:
    for voters in (NO_VOTERS, VoterSet([Voter(ReplicaKey(1, bytes([1] * 16)))])):
        disk = SimDisk()
        config = BrokerConfig({**CLUSTER, "node.id": "4"})
        format_node(disk, SimRandom(1), config, now_ms=1, cluster_id=META.cluster_id, initial_voters=voters)
        assert read_meta(disk, "/data") is not None
        assert not disk.exists("/data/__cluster_metadata-0")


def test_the_only_voter_is_named_with_the_address_that_it_advertises() -> None:
    disk = SimDisk()
    config = BrokerConfig({**CLUSTER, "node.id": "1", "advertised.listeners": "PLAINTEXT://c:1,CONTROLLER://c:2"})
    format_node(disk, SimRandom(1), config, now_ms=1)
    voters = read_snapshot(disk, "/data/__cluster_metadata-0", VOTERS).control.voters
    assert voters is not None and [voter.endpoints for voter in voters] == [(Endpoint("CONTROLLER", "c", 2),)]
