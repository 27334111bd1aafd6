"""Quire takes over a data directory that Apache Kafka 4.3.1 formatted and used.

`golden/kafka_used` is its metadata: topics created, grown and deleted, settings, two runs, snapshots, a controlled
shutdown with eligible leader replicas.
"""

from pathlib import Path

import pytest

from quire.metadata.image import ConfigResource
from quire.metadata.partition_image import PartitionImage
from quire.protocol import uuids
from quire.raft.log_store import FOLDER
from simulator.disk import SimDisk
from tests.controller.sim_controller import DATA, SimController

GOLDEN = Path(__file__).parent / "golden" / "kafka_used"
TOPIC_ID = uuids.from_text("59Bm9IeVQuW5Y1A4_UHjeA")
DIRECTORY_ID = uuids.from_text("1PZZx6MVSJGpCQxfkgsKvQ")


def kafkas_disk(*left_out: str) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(f"{DATA}/{FOLDER}")
    for source in sorted(GOLDEN.iterdir()):
        if source.name not in left_out:
            folder = DATA if source.name in ("meta.properties", "bootstrap.checkpoint") else f"{DATA}/{FOLDER}"
            disk.open(f"{folder}/{source.name}", create=True).pwritev([source.read_bytes()], 0)
    return disk


@pytest.mark.parametrize(
    "left_out", [(), ("00000000000000000077-0000000002.checkpoint",)], ids=["with its snapshot", "from the log alone"]
)
def test_quire_sees_what_kafka_wrote(left_out: tuple[str, ...]) -> None:
    sim = SimController(kafkas_disk(*left_out))
    assert sim.cluster_id == "AAAAAAAAAAAAAAAAAAAAEg" and sim.directory_id == DIRECTORY_ID
    sim.open()
    image = sim.image
    assert image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert list(image.topics_by_name) == ["demo"]
    gone = PartitionImage(
        replicas=(1,),
        isr=(),
        leader=-1,
        leader_epoch=1,
        partition_epoch=1,
        directories=(DIRECTORY_ID,),
        elr=(1,),
        last_known_elr=(1,),
    )
    assert image.topics_by_id[TOPIC_ID].partitions == dict.fromkeys(range(4), gone)
    assert image.configs == {ConfigResource(4, ""): {"log.cleaner.threads": "2", "min.insync.replicas": "1"}}
    assert (image.brokers[1].epoch, image.brokers[1].fenced) == (38, True)
    assert list(image.controllers) == [1]


def test_quire_takes_over_and_leads() -> None:
    sim = SimController(kafkas_disk()).start()
    partitions = sim.image.topics_by_name["demo"].partitions
    assert all((each.leader, each.isr, each.elr) == (1, (1,), ()) for each in partitions.values())
    assert sim.replica.log.epoch == 3
    assert sim.create("new").topics[0].error_code == 0
    assert sorted(SimController(sim.disk.kill(), seed=2).open().image.topics_by_name) == ["demo", "new"]
