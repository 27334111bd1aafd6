"""A broker whose disk flipped bits leads: it serves nothing damaged, and repairs itself from its followers."""

from pathlib import Path

from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, walk_batches
from tests.crash.dedicated_cluster import dedicated_cluster
from tests.crash.real_cluster import RealNode, wait_until, wait_while
from tests.crash.replicated_cluster import TOPIC, create_replicated, kill_and_compare, not_led_by, wait_until_in_sync
from tests.crash.replicated_load import PARTITIONS, ReplicatedLoad
from tests.crash.verdict import assert_clean

SETTINGS = {"internal.segment.bytes": "20000", "min.insync.replicas": "1"}
"""Small segments, and settings with which the damaged replica can lead alone."""
COMPLETED = 3


def test_a_replica_with_flipped_bits_leads_serves_nothing_damaged_and_repairs_itself(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path, **{"replica.lag.time.max.ms": 30_000}) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC, config=SETTINGS)
        with ReplicatedLoad(cluster.bootstrap_servers, TOPIC) as load:
            number, *others = cluster.nodes
            damaged = cluster.nodes[number]
            wait_until(lambda: all(len(each) > COMPLETED for each in segments(damaged)), "no segment is completed")
            damaged.process.stop()
            for completed, last in ((each[1], each[-1]) for each in segments(damaged)):
                flip_a_bit(completed)
                flip_a_bit(last)
            cluster.start(number)
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
            assert "damaged" not in damaged.process.log(), "nothing was read yet"

            cluster.kill(*others)
            wait_while(lambda: not_led_by(damaged.address, TOPIC, {number}))
            load.writer.wait_for_acks()
            cluster.start(*others)
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
            load.wait_for_progress()
            wait_while(lambda: not_led_by(cluster.bootstrap_servers, TOPIC, {number}))
            assert_clean(load)
            log = damaged.process.log()
        kill_and_compare(cluster)
        for partition in range(PARTITIONS):
            assert log.count(f"damaged segment repaired partition={TOPIC}-{partition} ") == 2


def segments(node: RealNode) -> list[list[Path]]:
    """The segments of each partition that have records of clients, in order; the active one may have none yet."""
    folders = [node.data / f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    return [[path for path in sorted(folder.glob("*.log")) if client_batches(path.read_bytes())] for folder in folders]


def client_batches(data: bytes | bytearray) -> list[BatchHeader]:
    return [header for header in walk_batches(data) if not header.is_control]


def flip_a_bit(path: Path) -> None:
    """A position within the last batch with records of a client."""
    data = bytearray(path.read_bytes())
    data[client_batches(data)[-1].position + HEADER_BYTES + 4] ^= 1
    path.write_bytes(data)
