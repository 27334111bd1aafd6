"""`python -m benchmarks.growth`: how the cost of metadata grows with the number of partitions, up to 200,000.

    python -m benchmarks.growth [--partitions 2000,20000,200000] [--json FILE]

Three brokers, three replicas each. It runs the code of controllers and brokers without sockets and disks: the image and
its memory, the snapshot and how long it takes to load, what a controller does when it takes over, when a broker fails
and when it returns, and a follower's fetch in which one partition has changed. Everything should
grow with the number of partitions at most, and the fetch not at all.
"""

import argparse
import gc
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from benchmarks.processes import resident_bytes
from quire.config.broker_config import BrokerConfig
from quire.controller.brokers import fence
from quire.controller.controller_result import Portions
from quire.controller.elections import settle_all
from quire.metadata.delta import ImageDelta
from quire.metadata.features import record_version
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.metadata.snapshot import image_of, records_of
from quire.node.replicas.replica_session import ReplicaSessions
from quire.protocol.messages import metadata_records as records
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quire.protocol.schema import Message
from quire.raft.log_summary import LogPosition
from quire.raft.snapshot_file import encode_snapshot, file_name, read_snapshot, write_snapshot
from quire.real.disk import RealDisk
from simulator.clock import SimClock
from simulator.random import SimRandom

COUNTS = (2_000, 20_000, 200_000)
PARTITIONS_OF_A_TOPIC = 50
BROKERS = (1, 2, 3)
VERSION = 30
EPOCH = 5
FETCHES = 1_000

T = TypeVar("T")
Figures = dict[str, float]


def directory(broker_id: int) -> bytes:
    return bytes([broker_id]) * 16


def topic_id(number: int) -> bytes:
    return (number // PARTITIONS_OF_A_TOPIC + 1).to_bytes(16, "big")


def cluster_of(partitions: int) -> Iterable[Message]:
    yield records.FeatureLevelRecord(name="metadata.version", feature_level=VERSION)
    yield records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    for broker_id in BROKERS:
        yield records.RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=EPOCH,
            incarnation_id=directory(broker_id),
            fenced=False,
            log_dirs=[directory(broker_id)],
        )
    for number in range(partitions):
        index = number % PARTITIONS_OF_A_TOPIC
        if index == 0:
            name = f"topic-{number // PARTITIONS_OF_A_TOPIC:06d}"
            yield records.TopicRecord(name=name, topic_id=topic_id(number))
        replicas = [BROKERS[(number + each) % len(BROKERS)] for each in range(len(BROKERS))]
        yield records.PartitionRecord(
            partition_id=index,
            topic_id=topic_id(number),
            replicas=replicas,
            isr=list(replicas),
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory(each) for each in replicas],
        )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, because all of it is computation, and the result."""
    gc.collect()
    gc.freeze()  # as a node does: what lasts is not looked at by later collections
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def run(image: ClusterImage, portions: Portions[None]) -> int:
    """Applies each portion before the next is made, as the controller does; returns the number of records."""
    count, delta = 0, ImageDelta()
    for portion in portions:
        for record in portion:
            replay(image, record, delta)
            count += 1
    return count


def snapshot(image: ClusterImage, folder: str) -> tuple[Figures, ClusterImage]:
    disk, name = RealDisk(), file_name(LogPosition(1, 1))

    def write() -> None:
        versioned = ((each, record_version(each, VERSION)) for each in records_of(image))
        batches = encode_snapshot(versioned, epoch=1, now_ms=0, last_contained_timestamp_ms=0)
        write_snapshot(disk, folder, name, batches)

    write_s, _ = timed(write)
    before_bytes = resident_bytes(os.getpid())
    load_s, loaded = timed(lambda: image_of(read_snapshot(disk, folder, name).records))
    assert loaded == image_of(records_of(image)), "a snapshot has everything"
    size_mb = (Path(folder) / name).stat().st_size / 1e6
    peak_mb = (resident_bytes(os.getpid()) - before_bytes) / 1e6
    return {
        "snapshot MB": size_mb,
        "snapshot written s": write_s,
        "snapshot loaded s": load_s,
        "loading it: MB": peak_mb,
    }, loaded


def idle_fetch_us(partitions: int) -> float:
    """A leader's session with one follower: the session part of a fetch in which one partition has changed."""
    sessions = ReplicaSessions(SimClock(), SimRandom(1))
    first = FetchRequest(session_id=0, session_epoch=0, max_wait_ms=500)
    for number in range(partitions):
        if number % PARTITIONS_OF_A_TOPIC == 0:
            first.topics.append(FetchTopic(topic_id=topic_id(number)))
        first.topics[-1].partitions.append(FetchPartition(partition=number % PARTITIONS_OF_A_TOPIC))
    session = sessions.of_fetch(first, 2, EPOCH)
    session.changed.clear()

    def fetch() -> None:
        for epoch in range(1, FETCHES + 1):
            changed = FetchTopic(topic_id=topic_id(0), partitions=[FetchPartition(partition=0, fetch_offset=epoch)])
            request = FetchRequest(session_id=session.id, session_epoch=epoch, topics=[changed])
            assert len(sessions.of_fetch(request, 2, EPOCH).changed) == 1
            session.changed.clear()

    return timed(fetch)[0] / FETCHES * 1e6


def measure(partitions: int) -> Figures:
    config = BrokerConfig.standalone({"min.insync.replicas": "2"})
    gc.collect()
    before_bytes = resident_bytes(os.getpid())
    image = image_of(cluster_of(partitions))
    gc.collect()
    figures: Figures = {"image MB": (resident_bytes(os.getpid()) - before_bytes) / 1e6}
    with tempfile.TemporaryDirectory(prefix="quire-growth-") as folder:
        more, _ = snapshot(image, folder)
        figures |= more
    figures["copied for a new controller s"], copied = timed(image.copy)
    figures["looked through by a new controller s"], _ = timed(lambda: run(copied, settle_all(copied, config)))
    figures["broker fenced s"], fenced = timed(lambda: run(copied, fence(copied, config, 1)))
    assert fenced > partitions, "the broker leaves every ISR"
    figures["published to a starting broker s"], _ = timed(lambda: ImageDelta.of_everything(image, ClusterImage()))
    figures["fetch in a session us"] = idle_fetch_us(min(partitions, 100_000))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__.split("\n")[0])
    parser.add_argument("--partitions", default=",".join(map(str, COUNTS)), help="numbers of partitions")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    counts = [int(each) for each in arguments.partitions.split(",")]
    # Each in a process of its own: memory that Python has freed stays with the process.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        columns = [pool.apply(measure, (count,)) for count in counts]
    print(f"| partitions | {' | '.join(f'{count:,}' for count in counts)} |")
    print(f"|---|{'---|' * len(counts)}")
    for name in columns[0]:
        print(f"| {name} | {' | '.join(f'{column[name]:,.4g}' for column in columns)} |")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(dict(zip(map(str, counts), columns, strict=True)), indent=2))


if __name__ == "__main__":
    main()
