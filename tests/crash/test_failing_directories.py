"""Real nodes whose data directories fail, fill up or are read-only: each fails alone, and nothing acknowledged is
lost.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from quire.protocol.records import Record, build_batch, iterate_records
from quire.testing import Cluster, WireConnection
from tests.wire.clients import WAIT_S, eventually
from tests.wire.raw import fetch, produce, records_of

TOPIC = "t"
VALUE = b"x" * 1000
SMALL_SEGMENTS = {"internal.segment.bytes": "5000"}
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


class Site:
    """A node with a partition in each of its two directories."""

    def __init__(self, cluster: Cluster, one: Path, two: Path) -> None:
        self.cluster = cluster
        self.one = one
        self.two = two
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 2, 1, config=SMALL_SEGMENTS)])[TOPIC].result(WAIT_S)
        self.first = next(index for index in range(2) if (one / f"{TOPIC}-{index}").is_dir())
        self.second = 1 - self.first
        assert (two / f"{TOPIC}-{self.second}").is_dir()
        self.acknowledged = [0, 0]

    def write(self, partition: int) -> int:
        """Appends a record, and counts it if it is acknowledged; returns the error code."""
        with WireConnection(self.cluster.bootstrap_servers) as connection:
            batch = build_batch([Record(0, time.time_ns() // 1_000_000, None, VALUE)])
            error = produce(connection, TOPIC, bytes(batch), partition=partition).error_code
        self.acknowledged[partition] += error == 0
        return error

    def write_until_refused(self, partition: int, most: int) -> int:
        for _ in range(most):
            error = self.write(partition)
            if error:
                return error
        raise AssertionError(f"{most} writes were taken")

    def count(self, partition: int) -> int:
        """How many records can be read; -1 if reading fails."""
        found = 0
        with WireConnection(self.cluster.bootstrap_servers) as connection:
            while True:
                answer = fetch(connection, TOPIC, found, partition=partition)
                if answer.error_code:
                    assert answer.error_code == STORAGE_ERROR
                    return -1
                records = list(iterate_records(records_of(answer)))
                if not records:
                    return found
                assert all(record.value == VALUE for record in records)
                found += len(records)

    def errors(self) -> dict[str, int]:
        """The result of DescribeLogDirs for each directory."""
        with WireConnection(self.cluster.bootstrap_servers) as connection:
            answer = connection.call(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
        return {found.log_dir: found.error_code for found in answer.results}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(tmp_path / "one", tmp_path / "two") as cluster:
        yield Site(cluster, tmp_path / "one", tmp_path / "two")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; only root may have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def running(one: Path, two: Path, **settings: int) -> Cluster:
    return Cluster(data_dir=f"{one},{two}", config={"log.flush.offset.checkpoint.interval.ms": 100, **settings})


def test_a_removed_directory_goes_offline_alone_and_returns_with_its_records(site: Site) -> None:
    for partition in (0, 1):
        assert site.write(partition) == 0
    aside = site.two.with_name("aside")
    site.two.rename(aside)
    site.two.write_text("no longer a folder")
    assert site.write_until_refused(site.second, 10) == STORAGE_ERROR
    assert site.write(site.second) == STORAGE_ERROR
    assert site.count(site.second) == -1
    assert site.errors() == {str(site.one): 0, str(site.two): STORAGE_ERROR}
    assert site.write(site.first) == 0
    assert site.count(site.first) == 2
    assert f"the data directory {site.two} is offline" in site.cluster.log()

    site.cluster.restart()
    assert site.errors() == {str(site.one): 0, str(site.two): STORAGE_ERROR}
    assert site.write(site.second) == STORAGE_ERROR and site.write(site.first) == 0

    site.two.unlink()
    aside.rename(site.two)
    site.cluster.restart()
    assert site.errors() == {str(site.one): 0, str(site.two): 0}
    assert [site.count(partition) for partition in range(2)] == site.acknowledged
    assert [site.write(partition) for partition in range(2)] == [0, 0]


def test_a_full_disk_refuses_writes_alone_loses_nothing_and_serves_again_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    with running(tmp_path / "one", small_disk / "two") as cluster:
        site = Site(cluster, tmp_path / "one", small_disk / "two")
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(1 << 20))
        assert site.write_until_refused(site.second, 2000) == STORAGE_ERROR
        before = site.acknowledged[site.second]
        assert before > 0
        assert [site.write(site.first) for _ in range(5)] == [0] * 5
        assert site.count(site.second) >= before, "it can be read all the time"
        assert site.errors() == {str(site.one): 0, str(site.two): 0}, "a disk without room is not offline"
        ballast.unlink()
        assert [site.write(site.second) for _ in range(5)] == [0] * 5
        eventually(lambda: f"{site.two} has room again" in cluster.log())
        assert cluster.log().count("until there is room again") == 1
        assert [site.count(partition) for partition in range(2)] == site.acknowledged
        cluster.kill()
        cluster.restart()
        assert [site.count(partition) for partition in range(2)] == site.acknowledged


def test_a_full_disk_gets_room_from_what_retention_deletes(tmp_path: Path, small_disk: Path) -> None:
    often = {"log.retention.check.interval.ms": 100, "log.initial.task.delay.ms": 0}
    with running(tmp_path / "one", small_disk / "two", **often) as cluster:
        site = Site(cluster, tmp_path / "one", small_disk / "two")
        assert site.write_until_refused(site.second, 3000) == STORAGE_ERROR
        assert site.write(site.second) == STORAGE_ERROR
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in {"retention.bytes": "50000", "file.delete.delay.ms": "0"}.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
        eventually(lambda: "larger than retention.bytes=50000" in cluster.log())
        eventually(lambda: site.write(site.second) == 0)
        assert [site.write(site.second) for _ in range(20)] == [0] * 20
        assert site.errors() == {str(site.one): 0, str(site.two): 0}


def test_a_node_starts_on_a_full_disk_and_topics_are_deleted_to_make_room(small_disk: Path) -> None:
    settings = {"quire.reserve.bytes": 400_000, "log.flush.offset.checkpoint.interval.ms": 100}
    with Cluster(data_dir=str(small_disk / "data"), config=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        config = SMALL_SEGMENTS | {"file.delete.delay.ms": "0"}
        for topic in ("large", "small"):
            admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(WAIT_S)

        def write(topic: str) -> int:
            with WireConnection(cluster.bootstrap_servers) as connection:
                batch = build_batch([Record(0, time.time_ns() // 1_000_000, None, VALUE)])
                return produce(connection, topic, bytes(batch)).error_code

        assert write("small") == 0
        written = 0
        while write("large") == 0:
            written += 1
        assert written > 100
        with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.write(bytes(512)):
                pass
        for killed in (True, False):
            if killed:
                cluster.kill()
            cluster.restart()
            with WireConnection(cluster.bootstrap_servers) as connection:
                assert len(list(iterate_records(records_of(fetch(connection, "small", 0))))) == 1
            assert write("small") == STORAGE_ERROR
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.delete_topics(["large"])["large"].result(WAIT_S)
        eventually(lambda: write("small") == 0)
        assert (small_disk / "data" / "quire.reserve").stat().st_size == 400_000


def test_a_read_only_directory_is_offline_from_the_start_and_has_everything_when_it_is_writable_again(
    tmp_path: Path, small_disk: Path
) -> None:
    with running(tmp_path / "one", small_disk / "two") as cluster:
        site = Site(cluster, tmp_path / "one", small_disk / "two")
        for partition in (0, 1):
            assert site.write(partition) == 0
        cluster.kill()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        cluster.restart()
        assert site.errors() == {str(site.one): 0, str(site.two): STORAGE_ERROR}
        assert site.write(site.second) == STORAGE_ERROR and site.write(site.first) == 0
        assert "Read-only file system" in cluster.log()
        cluster.kill()
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        cluster.restart()
        assert [site.count(partition) for partition in range(2)] == site.acknowledged
