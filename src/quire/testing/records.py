"""Topics and records for `Cluster`'s helpers: create a topic, write records to it, and read all of it back.

Each call opens a connection of its own and closes it, so the helpers may be used from any thread and after a restart.
Their requests meet none of the faults of a test.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from quire.cli.node.local.readiness import when_all_answer
from quire.client.admin.quorum import describe_quorum
from quire.client.admin.topics import NewTopic, create_topics, describe_topics
from quire.client.batch import Receipt
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.errors import ClientError, TimedOutError
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.client.shell_loop import BlockingLoop
from quire.node.faults import UNAFFECTED_CLIENT_ID
from quire.protocol.errors import ApiError, ErrorCode
from quire.testing.node_process import ClusterError

Content = str | bytes | None
Headers = Mapping[str, Content] | Sequence[tuple[str, Content]]
_NEW_TOPIC_S = 2.0
_POLL_S = 0.02
_ASK_S = 5.0
"""How long one broker is asked for the active controller: it may itself wait for one, while others know it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic, as `produce` has written it or `read_all` has read it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


def create_topic(
    servers: str,
    name: str | None,
    partitions: int | None,
    replication_factor: int | None,
    config: Mapping[str, str],
    timeout_s: float,
) -> str:
    chosen = name or f"topic-{uuid.uuid4().hex[:12]}"
    topic = NewTopic(
        chosen,
        -1 if partitions is None else partitions,
        -1 if replication_factor is None else replication_factor,
        configs=config,
    )
    with _client(servers, timeout_s) as client:
        created = client.run(create_topics(client.cluster, [topic]), timeout_s * 1000)[chosen]
        if isinstance(created, ApiError):
            raise created
    return chosen


def controller(servers: str, timeout_s: float) -> int:
    """The active controller; waits until there is one."""
    deadline = time.monotonic() + timeout_s
    with _client(servers, min(timeout_s, _ASK_S)) as client:
        while True:
            try:
                leader_id = client.run(describe_quorum(client.cluster)).leader_id
            except TimedOutError:
                leader_id = -1
            if leader_id >= 0:
                return leader_id
            if time.monotonic() >= deadline:
                raise ClusterError(f"there was no active controller within {timeout_s:g} s")
            time.sleep(_POLL_S)


def leader_of(servers: str, topic: str, partition: int, timeout_s: float) -> int:
    """Waits for a topic that the node which answers does not know yet: another one may have created it just now."""
    deadline = time.monotonic() + min(timeout_s, _NEW_TOPIC_S)
    with _client(servers, timeout_s) as client:
        while True:
            found = client.run(describe_topics(client.cluster, [topic]), timeout_s * 1000)[topic]
            is_unknown = isinstance(found, ApiError) and found.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not is_unknown or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_S)
        if isinstance(found, ApiError):
            raise found
        if partition not in found.partitions:
            raise ClusterError(f"topic {topic!r} has no partition {partition}, only 0 to {len(found.partitions) - 1}")
        return found.partitions[partition].leader


def wait_for_brokers(addresses: Sequence[str], timeout_s: float) -> bool:
    """Whether each of these brokers names all of them before the time-out."""
    loop = BlockingLoop()
    try:
        loop.run_until(when_all_answer(loop, addresses), timeout_s * 1000)
    except TimedOutError:
        return False
    finally:
        loop.close()
    return True


def produce(
    servers: str,
    topic: str,
    records: Sequence[Content | tuple[Content, Content]],
    headers: Headers | None,
    partition: int | None,
    timestamp_ms: int | None,
    timeout_s: float,
) -> list[Record]:
    pairs = [_pair(record) for record in records]
    encoded_headers = _encode_headers(headers)
    with _client(servers, timeout_s) as client:
        producer = Producer(client.cluster, ProducerConfig(linger_ms=0, delivery_timeout_ms=timeout_s * 1000))
        partitions = sorted(client.run(producer.prepare(topic), timeout_s * 1000).partitions)
        written_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        receipts = []
        for index, (key, value) in enumerate(pairs):
            # Unlike a producer's random choice, this one repeats in every run of a test.
            chosen = partitions[index % len(partitions)] if partition is None and key is None else partition
            receipts.append(
                producer.send(topic, value, key=key, headers=encoded_headers, partition=chosen, timestamp_ms=written_ms)
            )
        client.loop.run_until(producer.flush(), timeout_s * 1000 + 5000)
        if producer.first_error is not None:
            raise producer.first_error
        producer.close()
    return [
        _written(topic, receipt, written_ms, pair, encoded_headers)
        for receipt, pair in zip(receipts, pairs, strict=True)
    ]


def _written(
    topic: str,
    receipt: Receipt,
    written_ms: int,
    pair: tuple[bytes | None, bytes | None],
    headers: list[tuple[str, bytes | None]],
) -> Record:
    appended_ms = receipt.delivery.timestamp_ms  # -1 unless the topic has message.timestamp.type=LogAppendTime
    timestamp_ms = written_ms if appended_ms < 0 else appended_ms
    return Record(topic, receipt.partition, receipt.offset, timestamp_ms, *pair, list(headers))


def read_all(
    servers: str, topic: str, partition: int | None, at_least: int, read_committed: bool, timeout_s: float
) -> list[Record]:
    deadline = time.monotonic() + timeout_s
    found = "no broker has answered"
    with _client(servers, timeout_s) as client:
        while True:
            try:
                records = _read_to_the_end(client, topic, partition, read_committed, deadline, wait=at_least > 0)
            except TimedOutError:
                if not at_least:
                    raise
            else:
                if records is not None and len(records) >= at_least:
                    return records
                found = "the topic does not exist" if records is None else f"there are {len(records)}"
            if time.monotonic() >= deadline:
                wanted = "a record" if at_least == 1 else f"{at_least} records"
                raise ClusterError(f"waited {timeout_s:g} s for {wanted} in topic {topic!r}: {found}")
            time.sleep(_POLL_S)


def _read_to_the_end(
    client: BlockingClient, topic: str, partition: int | None, read_committed: bool, deadline: float, *, wait: bool
) -> list[Record] | None:
    """All records up to the current end, by partition and offset; None if `wait` and the topic does not exist yet."""

    def left_ms() -> float:
        return max(1.0, (deadline - time.monotonic()) * 1000)

    found = client.run(describe_topics(client.cluster, [topic]), left_ms())[topic]
    if isinstance(found, ApiError):
        if found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise found
        if wait:
            return None
        raise ClusterError(f"topic {topic!r} does not exist; at_least=1 waits until it exists and has a record")
    if partition is not None and partition not in found.partitions:
        raise ClusterError(f"topic {topic!r} has no partition {partition}, only 0 to {len(found.partitions) - 1}")
    wanted = [TopicPartition(topic, index) for index in found.partitions if partition in (None, index)]
    last = client.run(
        list_offsets(client.cluster, dict.fromkeys(wanted, LATEST), isolation_level=int(read_committed)), left_ms()
    )
    ends = {each: at.offset for each, at in last.items()}
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=read_committed))
    client.run(consumer.assign(dict.fromkeys(wanted, BEGINNING), ends), left_ms())
    records: list[Record] = []
    while any(offset < ends[each] for each, offset in consumer.positions.items()):
        client.loop.run_until(consumer.arrival(), left_ms())
        for fetched in consumer.poll():
            index = fetched.topic_partition.partition
            records += [
                Record(topic, index, read.offset, read.timestamp, read.key, read.value, list(read.headers))
                for read in fetched.records()
                if read.offset < ends[fetched.topic_partition]
            ]
    consumer.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


@contextmanager
def _client(servers: str, timeout_s: float) -> Iterator[BlockingClient]:
    """A client whose failures are ClusterErrors."""
    with BlockingClient(
        servers, client_id=UNAFFECTED_CLIENT_ID, request_timeout_ms=min(30_000.0, timeout_s * 1000)
    ) as client:
        try:
            yield client
        except ApiError as error:
            raise ClusterError(f"{error} ({error.code.name})") from error
        except ClientError as error:
            raise ClusterError(str(error)) from error


def _pair(record: Content | tuple[Content, Content]) -> tuple[bytes | None, bytes | None]:
    if isinstance(record, tuple):
        if len(record) != 2:
            raise TypeError(f"a record is a value or a pair (key, value), not {len(record)} items: {record!r}")
        return encode(record[0]), encode(record[1])
    return None, encode(record)


def encode(content: Content) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    raise TypeError(f"keys and values are bytes, str or None, not {type(content).__name__}; encode {content!r} first")


def _encode_headers(headers: Headers | None) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, encode(content)) for name, content in pairs]
