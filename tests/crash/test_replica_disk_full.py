"""The disk of one node is full: partitions that others lead keep working, and at the end nothing is missing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.testing import Cluster
from tests.crash.real_cluster import wait_until
from tests.crash.replicated_cluster import (
    NODES,
    REPLICATED,
    TOPIC,
    create_replicated,
    in_sync,
    kill_and_compare,
    wait_until_in_sync,
)
from tests.crash.replicated_load import WAIT_S, ReplicatedLoad
from tests.crash.verdict import assert_clean

FULL = 1
SIZE_MB = 48
LEFT_BYTES = 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of the data of three nodes, of which one has a small file system; only root may have that."""
    folder = tmp_path / f"node-{FULL}"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_of_one_node_stops_only_what_it_leads_and_loses_nothing(small_disk: Path) -> None:
    fill_again_and_again(small_disk, 1)


@pytest.mark.soak
def test_a_disk_that_is_full_again_and_again_loses_nothing(small_disk: Path) -> None:
    fill_again_and_again(small_disk, 5)


def fill_again_and_again(small_disk: Path, times: int) -> None:
    settings = REPLICATED | {"quire.reserve.bytes": 400_000}
    with Cluster(nodes=NODES, config=settings, data_dir=small_disk, start_timeout_s=WAIT_S) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC)
        with ReplicatedLoad(cluster.bootstrap_servers, TOPIC, transactions=False) as load:
            for _ in range(times):
                ballast = fill(small_disk / f"node-{FULL}")
                wait_until(lambda: is_out_of_sync(cluster), f"node {FULL} does not leave the ISR")
                others = [index for index, (leader, _) in in_sync_of(cluster).items() if leader != FULL]
                load.writer.wait_for_acks(others)
                ballast.unlink()
                load.wait_for_progress()
                wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
            assert_clean(load)
        kill_and_compare(cluster)


def fill(disk: Path) -> Path:
    """Fills the disk until little room is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while free_bytes(disk) > LEFT_BYTES:
            file.write(bytes(min(65536, free_bytes(disk) - LEFT_BYTES + 4096)))
    return ballast


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def in_sync_of(cluster: Cluster) -> dict[int, tuple[int, set[int]]]:
    return in_sync(cluster.bootstrap_servers, TOPIC)


def is_out_of_sync(cluster: Cluster) -> bool:
    """Writes to the partitions that other nodes lead."""
    led_by_others = [isr for leader, isr in in_sync_of(cluster).values() if leader != FULL]
    return bool(led_by_others) and all(FULL not in isr for isr in led_by_others)
