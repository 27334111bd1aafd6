"""The loads: what a librdkafka client does to a broker, and how long it takes.

Every function is one measured load on a running broker and returns its figures; the caller reads the CPU time from the
broker's process. Producers that must not share one Python interpreter run as separate processes.
"""

import multiprocessing
import socket
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

BATCH = 10_000


@dataclass(slots=True)
class Volume:
    """A load measured by volume."""

    seconds: float
    records: int
    bytes: int

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds


@dataclass(slots=True)
class Latency:
    """A load measured by single round trips, in microseconds."""

    p50_us: float
    p99_us: float
    count: int


def latency(samples_us: list[float]) -> Latency:
    ordered = sorted(samples_us)
    return Latency(ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], len(ordered))


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)
    for partition in range(partitions):
        _wait_for_leader(admin, topic, partition)


def _wait_for_leader(admin: AdminClient, topic: str, partition: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        known = admin.list_topics(topic, timeout=10).topics[topic].partitions.get(partition)
        if known is not None and known.leader >= 0:
            return
    raise TimeoutError(f"{topic}-{partition} got no leader within 30 s")


def produce(bootstrap: str, topic: str, records: int, size: int, settings: dict[str, object]) -> Volume:
    """Sends `records` records of `size` bytes and waits until the broker has acknowledged the last."""
    failures: list[str] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000, "linger.ms": 5, **settings}
    )
    producer.list_topics(topic, timeout=30)
    value = b"x" * size
    batch = [{"value": value}] * BATCH
    started = time.perf_counter()
    sent = 0
    while sent < records:
        wanted = batch[: min(BATCH, records - sent)]
        try:
            sent += producer.produce_batch(topic, [dict(message) for message in wanted], on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    producer.flush(120)
    seconds = time.perf_counter() - started
    if failures:
        raise RuntimeError(f"{len(failures)} of {records} records failed: {failures[0]}")
    return Volume(seconds, records, records * size)


def _produce_from_process(
    ready: Barrier,
    results: "multiprocessing.Queue[tuple[float, float]]",
    bootstrap: str,
    topic: str,
    records: int,
    size: int,
    settings: dict[str, object],
) -> None:
    ready.wait()
    started = time.time()
    produce(bootstrap, topic, records, size, settings)
    results.put((started, time.time()))


def produce_from_processes(
    bootstrap: str, topic: str, producers: int, records_each: int, size: int, settings: dict[str, object]
) -> Volume:
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(producers)
    results: multiprocessing.Queue[tuple[float, float]] = context.Queue()
    workers = [
        context.Process(
            target=_produce_from_process, args=(ready, results, bootstrap, topic, records_each, size, settings)
        )
        for _ in range(producers)
    ]
    for worker in workers:
        worker.start()
    spans = [results.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    return Volume(seconds, producers * records_each, producers * records_each * size)


def consume(bootstrap: str, topic: str, partitions: int, records: int, size: int) -> Volume:
    """Reads `records` records from the beginning of every partition of `topic`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 1 << 20,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    seen = 0
    started = time.perf_counter()
    while seen < records:
        messages = consumer.consume(BATCH, timeout=10)
        if not messages:
            raise RuntimeError(f"only {seen} of {records} records came")
        seen += len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return Volume(seconds, seen, seen * size)


def acknowledge_one_by_one(bootstrap: str, topic: str, count: int, settings: dict[str, object]) -> Latency:
    """One record, wait for its acknowledgement, the next."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **settings})
    producer.list_topics(topic, timeout=30)
    samples: list[float] = []
    acknowledged: list[object] = []
    for _ in range(count):
        started = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0, on_delivery=lambda error, _: acknowledged.append(error))
        while not acknowledged:
            producer.poll(1)
        samples.append((time.perf_counter() - started) * 1e6)
        if acknowledged.pop() is not None:
            raise RuntimeError("a record was not acknowledged")
    return latency(samples)


def produce_to_consume(bootstrap: str, topic: str, count: int) -> Latency:
    """One record from produce() until a consumer that waits for it has it."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    _low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, high)])
    samples: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.poll(0)
        message = consumer.poll(10)
        if message is None or message.error():
            raise RuntimeError("a record did not arrive within 10 s")
        samples.append((time.perf_counter() - started) * 1e6)
    producer.flush(10)
    consumer.close()
    return latency(samples)


def open_connections(host: str, port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection((host, port)) for _ in range(count)]


def transactions_of_one_record(bootstrap: str, topic: str, count: int) -> Latency:
    """Transactions of one record each, one at a time."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"bench-{topic}", "linger.ms": 0})
    producer.init_transactions(30)
    samples: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        producer.begin_transaction()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.commit_transaction(30)
        samples.append((time.perf_counter() - started) * 1e6)
    return latency(samples)


def subscribe_to_first_record(bootstrap: str, topic: str, count: int, protocol: str) -> Latency:
    """A new consumer, alone in a new group, from its creation until it has a record."""
    samples: list[float] = []
    for number in range(count):
        started = time.perf_counter()
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-{protocol}-{number}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        message = consumer.poll(30)
        if message is None or message.error():
            raise RuntimeError("no record came within 30 s")
        samples.append((time.perf_counter() - started) * 1e6)
        consumer.close()
    return latency(samples)
