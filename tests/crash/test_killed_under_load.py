"""A node killed with -9 while clients write: everything it acknowledged is in the log afterwards, and nothing is
damaged.

The page cache survives the process, so this needs no flush. test_power_loss.py and the simulator test power losses.
"""

import struct
from collections.abc import Iterator
from typing import Any

import crc32c
import pytest
from confluent_kafka.admin import AdminClient

from quire.protocol.errors import ErrorCode
from quire.testing import Cluster, WireConnection
from tests.crash.record_load import IDEMPOTENT, PARTITIONS, PLAIN, TOPIC, Load, assert_stored, create_topic
from tests.wire.batches import batch
from tests.wire.clients import WAIT_S
from tests.wire.raw import fetch, list_offset, produce, records_of

KILLS = 3
ACKS_PER_ROUND = 3000
SMALL_SEGMENTS = {"log.segment.bytes": 1 << 20, "log.retention.ms": -1}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=SMALL_SEGMENTS) as running:
        yield running


def assert_whole(bootstrap: str, partition: int) -> None:
    """Every byte of the log belongs to a batch with the right checksum and the next offset."""
    with WireConnection(bootstrap) as connection:
        offset, end = 0, list_offset(connection, TOPIC, -1, partition=partition).offset
        while offset < end:
            found = fetch(connection, TOPIC, offset, partition=partition)
            assert found.error_code == ErrorCode.NONE
            records = records_of(found)
            position = 0
            while position + 12 <= len(records):
                base_offset, length = struct.unpack_from(">qi", records, position)
                if position + 12 + length > len(records):
                    break
                assert base_offset == offset
                (crc,) = struct.unpack_from(">I", records, position + 17)
                assert crc == crc32c.crc32c(records[position + 21 : position + 12 + length])
                (last_offset_delta,) = struct.unpack_from(">i", records, position + 23)
                offset += last_offset_delta + 1
                position += 12 + length


@pytest.mark.parametrize("settings", [IDEMPOTENT, PLAIN], ids=["idempotent", "acks=1"])
def test_every_acknowledged_record_is_served_after_each_kill(cluster: Cluster, settings: dict[str, Any]) -> None:
    kill_under_load(cluster, settings, KILLS)


@pytest.mark.soak
@pytest.mark.parametrize("settings", [IDEMPOTENT, PLAIN], ids=["idempotent", "acks=1"])
def test_every_acknowledged_record_is_served_after_many_kills(cluster: Cluster, settings: dict[str, Any]) -> None:
    kill_under_load(cluster, settings, 10 * KILLS)


def kill_under_load(cluster: Cluster, settings: dict[str, Any], kills: int) -> None:
    bootstrap = cluster.bootstrap_servers
    create_topic(bootstrap, TOPIC)
    load = Load(bootstrap, **settings)
    for _ in range(kills):
        load.wait_for_more(ACKS_PER_ROUND)
        cluster.kill()
        cluster.restart()
    load.wait_for_more(ACKS_PER_ROUND)
    assert_stored(bootstrap, load, idempotent=settings["enable.idempotence"])
    assert "Traceback" not in cluster.log()
    for partition in range(PARTITIONS):
        assert_whole(bootstrap, partition)


def test_a_torn_tail_is_truncated_and_logged(cluster: Cluster) -> None:
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=1)
    with WireConnection(cluster.bootstrap_servers) as connection:
        for number in range(10):
            assert produce(connection, TOPIC, batch([b"%d" % number])).base_offset == number
    cluster.kill()
    torn = batch([b"never finished"] * 50, base_offset=10)
    (segment,) = (cluster.data_dir / f"{TOPIC}-0").glob("*.log")
    with segment.open("ab") as file:
        file.write(torn[: len(torn) // 2])
    before = cluster.log_size
    cluster.restart()
    with WireConnection(cluster.bootstrap_servers) as connection:
        assert list_offset(connection, TOPIC, -1).offset == 10
        assert produce(connection, TOPIC, batch([b"next"])).base_offset == 10
    told = [line for line in cluster.log(before).splitlines() if f"{TOPIC}-0" in line]
    assert told, "cutting the log must not pass in silence"


def test_acknowledged_topics_survive_a_kill(cluster: Cluster) -> None:
    for number in range(KILLS):
        create_topic(cluster.bootstrap_servers, f"kept-{number}", partitions=2)
        create_topic(cluster.bootstrap_servers, f"dropped-{number}")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.delete_topics([f"dropped-{number}"])[f"dropped-{number}"].result(WAIT_S)
        cluster.kill()
        cluster.restart()
        found = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=WAIT_S).topics
        expected = {f"kept-{each}": 2 for each in range(number + 1)}
        assert {name: len(topic.partitions) for name, topic in found.items()} == expected
