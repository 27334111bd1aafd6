"""`quire consume --order time`: the partitions of a topic, merged by timestamp."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import pytest

from quire.cli.records import time_order
from quire.cli.records.time_order import in_order_of_time
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import BEGINNING
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from tests.cli.command import quire


@pytest.fixture
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as opened:
        yield opened


def fill(client: BlockingClient, topic: str, times: Sequence[Sequence[int]], size_bytes: int = 1) -> None:
    """A topic with a partition for each list, and a record for each time."""
    client.run(create_topics(client.cluster, [NewTopic(topic, len(times))]))
    producer = Producer(client.cluster, ProducerConfig())
    client.run(producer.prepare(topic))
    for partition, listed in enumerate(times):
        for time_ms in listed:
            value = f"{time_ms} ".encode().ljust(size_bytes, b".")
            producer.send(topic, value, partition=partition, timestamp_ms=time_ms)
    client.loop.run_until(producer.flush())
    producer.close()


def read(servers: str, topic: str, *arguments: str) -> list[tuple[int, int]]:
    done = quire("consume", topic, "--from-beginning", "--order", "time", "--json", *arguments, servers=servers)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["timestamp"], line["partition"]) for line in lines]


def test_partitions_are_merged_by_timestamp(servers: str, client: BlockingClient) -> None:
    fill(client, "merged", [[1000, 4000, 7000], [2000, 3000, 9000], [], [1000, 8000]])
    expected = [(1000, 0), (1000, 3), (2000, 1), (3000, 1), (4000, 0), (7000, 0), (8000, 3), (9000, 1)]
    assert read(servers, "merged") == expected
    assert read(servers, "merged", "--count", "3") == expected[:3]
    assert read(servers, "merged", "-p", "1", "-p", "3") == [each for each in expected if each[1] in (1, 3)]


def test_a_partition_keeps_its_order_although_its_timestamps_go_back(servers: str, client: BlockingClient) -> None:
    fill(client, "back", [[5000, 1000], [2000]])
    assert read(servers, "back") == [(2000, 1), (5000, 0), (1000, 0)]


def test_only_what_matches_is_printed_and_counted(servers: str, client: BlockingClient) -> None:
    fill(client, "matching", [[1000, 2000], [1500]])
    none = quire("consume", "matching", "--from-beginning", "--order", "time", "--key", "typo", servers=servers)
    assert (none.stdout, none.stderr) == (b"", b"0 of 3 records matched\n")


def test_memory_is_bounded_whichever_partition_comes_first(
    client: BlockingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition is older than all others, and the others fill up while it is read."""
    random = Random(1)
    spread = [sorted(random.randrange(1_000_000, 2_000_000) for _ in range(2000)) for _ in range(3)]
    fill(client, "bounded", [list(range(1000, 3000)), *spread], size_bytes=1000)
    topic_partitions = [TopicPartition("bounded", partition) for partition in range(4)]
    found = client.run(list_offsets(client.cluster, dict.fromkeys(topic_partitions, LATEST)))
    ends = {topic_partition: end.offset for topic_partition, end in found.items()}
    buffered: list[int] = []
    fill_queue = time_order._Filler.fill

    def watched(self: time_order._Filler, wanted: time_order._Queue, queues: list[time_order._Queue]) -> None:
        fill_queue(self, wanted, queues)
        buffered.append(sum(queue.buffered_bytes for queue in queues))

    monkeypatch.setattr(time_order._Filler, "fill", watched)
    starts = dict.fromkeys(topic_partitions, BEGINNING)
    merged = in_order_of_time(client, starts, ends, read_committed=False, buffer_bytes=400_000)
    times = [record.timestamp for _, record in merged]
    assert len(times) == 8000
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert max(buffered) < 2 * 400_000, "8 MB in all"


@pytest.mark.parametrize("other", [("--follow",), ("--group", "g")])
def test_an_order_by_time_needs_an_end(servers: str, other: tuple[str, ...]) -> None:
    refused = quire("consume", "merged", "--order", "time", *other, servers=servers)
    assert refused.returncode == 2
    assert f"cannot be combined with {other[0]}" in refused.stderr.decode()
