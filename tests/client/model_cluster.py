"""A model of a cluster: brokers on the simulated network that answer enough requests to test a client.

It keeps Kafka's promises where the client relies on them (sequence numbers, leaders, topic ids) and breaks others when
a test says so: `refuse` answers the next requests of an API with an error, `swallow` never answers them, and
`carry_out_and_drop` carries them out and then closes the connection without an answer.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from quire.address import Address
from quire.client.cluster import Cluster
from quire.pending import Pending
from quire.protocol import apis
from quire.protocol.codec import decode, decoder, encode
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from quire.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from quire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from quire.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from quire.protocol.records import Record, patch, read_header, read_records
from quire.protocol.schema import Message
from quire.seams import Transport
from quire.steps import Steps, perform
from simulator.clock import SimClock
from simulator.network import Conditions, SimNetwork
from simulator.random import SimRandom
from tests.client.model_fetch_sessions import ModelFetchSessions

PORT = 9092
API_KEYS = (0, 1, 2, 3, 18, 22)

T = TypeVar("T")


@dataclass
class ModelPartition:
    leader: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    # producer id -> epoch and next sequence, and the last five batches as (epoch, sequence, base offset)
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    recent: dict[int, deque[tuple[int, int, int]]] = field(default_factory=dict)

    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in read_records(batch)]

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        header = read_header(data, 0)
        if header.producer_id >= 0:
            topic_partition = (header.producer_epoch, header.base_sequence)
            recent = self.recent.setdefault(header.producer_id, deque(maxlen=5))
            for epoch, sequence, base_offset in recent:
                if (epoch, sequence) == topic_partition:
                    return ErrorCode.NONE, base_offset
            known = self.producers.get(header.producer_id)
            if known is not None:
                epoch, expected = known
                if header.producer_epoch < epoch:
                    return ErrorCode.INVALID_PRODUCER_EPOCH, -1
                if header.base_sequence != (expected if header.producer_epoch == epoch else 0):
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            next_sequence = (header.base_sequence + header.record_count) % (1 << 31)
            self.producers[header.producer_id] = (header.producer_epoch, next_sequence)
            recent.append((*topic_partition, self.end_offset))
        kept = bytearray(data)
        patch(kept, 0, self.end_offset, self.leader_epoch)
        base_offset = self.end_offset
        self.batches.append(bytes(kept))
        self.end_offset += header.record_count
        return ErrorCode.NONE, base_offset


@dataclass
class ModelTopic:
    name: str
    topic_id: bytes
    partitions: list[ModelPartition]


@dataclass
class _Rule:
    node: int | None
    act: Callable[["_Connection", Message], Message | None]
    left: int


class ModelCluster:
    def __init__(self, seed: int = 1, nodes: int = 1, conditions: Conditions | None = None) -> None:
        self.clock = SimClock()
        self.random = SimRandom(seed)
        self.network = SimNetwork(self.clock, self.random.stream("network"), conditions)
        self.topics: dict[str, ModelTopic] = {}
        self.nodes = list(range(1, nodes + 1))
        self.requests: list[tuple[int, Message]] = []
        self.versions = {key: apis.VALID_VERSIONS[key] for key in API_KEYS}
        self.fetch_sessions = {node: ModelFetchSessions() for node in self.nodes}
        self._rules: dict[int, deque[_Rule]] = {}
        self._next_producer_id = 4000
        for node in self.nodes:
            self.start(node)

    # --- What tests do

    def client(self, request_timeout_ms: float = 30_000) -> Cluster:
        return Cluster(
            [Address(f"node-{node}", PORT) for node in self.nodes],
            clock=self.clock,
            random=self.random.stream("client"),
            network=self.network.host("client"),
            request_timeout_ms=request_timeout_ms,
        )

    def run(self, steps: Steps[T]) -> T:
        """Runs the operation for as much virtual time as it needs, and returns its result or raises its exception."""
        outcome = self.wait(perform(steps))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def wait(self, pending: Pending[T], limit_ms: float = 600_000) -> T:
        self.clock.run_until(lambda: pending.done, limit_ms)
        return pending.value

    def create(self, name: str, partitions: int = 1) -> ModelTopic:
        leaders = [self.nodes[index % len(self.nodes)] for index in range(partitions)]
        topic = ModelTopic(name, self.random.uuid(), [ModelPartition(leader) for leader in leaders])
        self.topics[name] = topic
        return topic

    def move(self, topic: str, partition: int, leader: int) -> None:
        moved = self.topics[topic].partitions[partition]
        moved.leader, moved.leader_epoch = leader, moved.leader_epoch + 1

    def start(self, node: int) -> None:
        host = self.network.host(f"node-{node}")
        host.listen("", PORT, lambda transport: _Connection(self, node, transport))

    def refuse(self, api: str, error: ErrorCode, count: int = 1, node: int | None = None) -> None:
        def act(connection: "_Connection", request: Message) -> Message:
            return self.refusal(request, error)

        self._add_rule(api, _Rule(node, act, count))

    def swallow(self, api: str, count: int = 1) -> None:
        self._add_rule(api, _Rule(None, lambda connection, request: None, count))

    def carry_out_and_drop(self, api: str, count: int = 1) -> None:
        def act(connection: "_Connection", request: Message) -> None:
            self.answer(connection.node, request)
            connection.transport.abort()

        self._add_rule(api, _Rule(None, act, count))

    def _add_rule(self, api: str, rule: _Rule) -> None:
        self._rules.setdefault(apis.api_key(api), deque()).append(rule)

    # --- What brokers do

    def handle(self, connection: "_Connection", request: Message) -> Message | None:
        self.requests.append((connection.node, request))
        rules = self._rules.get(request.API_KEY)
        if rules and rules[0].node in (None, connection.node):
            rule = rules[0]
            rule.left -= 1
            if not rule.left:
                rules.popleft()
            return rule.act(connection, request)
        return self.answer(connection.node, request)

    def answer(self, node: int, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        if isinstance(request, InitProducerIdRequest):
            self._next_producer_id += 1
            return InitProducerIdResponse(producer_id=self._next_producer_id, producer_epoch=0)
        if isinstance(request, ProduceRequest):
            return self._produce(node, request, None)
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(node, request, None)
        assert isinstance(request, FetchRequest), request
        return self._fetch(node, request, None)

    def refusal(self, request: Message, error: ErrorCode) -> Message:
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(error_code=error)
        if isinstance(request, ProduceRequest):
            return self._produce(0, request, error)
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(0, request, error)
        assert isinstance(request, FetchRequest), request
        return self._fetch(0, request, error)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [str(topic.name) for topic in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host=f"node-{node}", port=PORT) for node in self.nodes],
            cluster_id="model",
            controller_id=self.nodes[0],
            topics=[self._describe(name) for name in names],
        )

    def _describe(self, name: str) -> MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        return MetadataResponseTopic(
            name=name,
            topic_id=topic.topic_id,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=self.nodes,
                    isr_nodes=self.nodes,
                )
                for index, partition in enumerate(topic.partitions)
            ],
        )

    def _find(self, node: int, name: str, topic_id: bytes, index: int) -> tuple[ErrorCode, ModelPartition | None]:
        for topic in self.topics.values():
            if topic.name == name or topic.topic_id == topic_id:
                partition = topic.partitions[index]
                return (ErrorCode.NONE if partition.leader == node else ErrorCode.NOT_LEADER_OR_FOLLOWER), partition
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None

    def _produce(self, node: int, request: ProduceRequest, refused: ErrorCode | None) -> ProduceResponse:
        responses = []
        for topic in request.topic_data:
            answers = []
            for part in topic.partition_data:
                code, partition = self._find(node, topic.name, topic.topic_id, part.index)
                code = code if refused is None else refused
                base_offset = -1
                if not code and partition is not None:
                    assert part.records is not None
                    code, base_offset = partition.append(bytes(part.records))
                answers.append(PartitionProduceResponse(index=part.index, error_code=code, base_offset=base_offset))
            responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
        return ProduceResponse(responses=responses)

    def _list_offsets(self, node: int, request: ListOffsetsRequest, refused: ErrorCode | None) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            answers = []
            for part in topic.partitions:
                code, partition = self._find(node, topic.name, b"", part.partition_index)
                code = code if refused is None else refused
                answer = ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
                if not code and partition is not None:
                    answer.offset = _look_up(partition, part.timestamp)
                answers.append(answer)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return ListOffsetsResponse(topics=topics)

    def _fetch(self, node: int, request: FetchRequest, refused: ErrorCode | None) -> FetchResponse:
        responses = []
        if refused is None:
            sessions = self.fetch_sessions[node]
            code = sessions.take(request)
            if code:
                return FetchResponse(error_code=code)
        topics = request.topics if refused is not None else sessions.topics(request)
        for topic in topics:
            answers = []
            for part in topic.partitions:
                code, partition = self._find(node, topic.topic, topic.topic_id, part.partition)
                code = code if refused is None else refused
                answer = PartitionData(partition_index=part.partition, error_code=code, records=b"")
                if not code and partition is not None:
                    answer.high_watermark = partition.end_offset
                    if not 0 <= part.fetch_offset <= partition.end_offset:
                        answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                    answer.records = _read(partition, part.fetch_offset, part.partition_max_bytes)
                answers.append(answer)
            responses.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers))
        if refused is not None:
            return FetchResponse(responses=responses)
        return sessions.answer(request, responses)


def _look_up(partition: ModelPartition, timestamp: int) -> int:
    if timestamp < 0:
        return partition.start_offset if timestamp == -2 else partition.end_offset
    return next((record.offset for record in partition.records() if record.timestamp >= timestamp), -1)


def _read(partition: ModelPartition, offset: int, max_bytes: int) -> bytes:
    found = b""
    for batch in partition.batches:
        if read_header(batch, 0).last_offset >= offset and (not found or len(found) + len(batch) <= max_bytes):
            found += batch
    return found


class _Connection:
    """One client's connection, answered in order.

    A fetch that finds nothing waits for its max_wait, and later requests wait for it.
    """

    def __init__(self, cluster: ModelCluster, node: int, transport: Transport) -> None:
        self.cluster = cluster
        self.node = node
        self.transport = transport
        self._room = bytearray(1 << 16)
        self._received = bytearray()
        self._waits = False

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def received(self, size: int) -> None:
        self._received += self._room[:size]
        self._go_on()

    def _go_on(self) -> None:
        while len(self._received) >= 4 and not self._waits:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                return
            frame, self._received = bytes(self._received[4:end]), self._received[end:]
            self._handle(memoryview(frame))

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        pass

    def _handle(self, frame: memoryview) -> None:
        api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        header, position = decoder(RequestHeader, apis.request_header_version(api_key, version))(frame, 0)
        oldest, newest = self.cluster.versions.get(api_key, (0, -1))
        if api_key == 18:
            self._send(header.correlation_id, 18, *self._versions(version, oldest, newest))
            return
        assert oldest <= version <= newest, f"the client sent {apis.API_NAMES[api_key]} {version}"
        request = decode(apis.request_class(api_key), frame, version, position)
        response = self.cluster.handle(self, request)
        if response is None or (isinstance(request, ProduceRequest) and request.acks == 0):
            return
        if (
            isinstance(response, FetchResponse)
            and isinstance(request, FetchRequest)
            and not _is_enough(request, response)
        ):

            def answer_late() -> None:
                self._waits = False
                self._send(header.correlation_id, api_key, response, version)
                self._go_on()

            self._waits = True
            self.cluster.clock.call_later(request.max_wait_ms, answer_late)
            return
        self._send(header.correlation_id, api_key, response, version)

    def _versions(self, version: int, oldest: int, newest: int) -> tuple[Message, int]:
        ranges = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.cluster.versions.items()
        ]
        if oldest <= version <= newest:
            return ApiVersionsResponse(api_keys=ranges), version
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=ranges), 0

    def _send(self, correlation_id: int, api_key: int, response: Message, version: int) -> None:
        header = encode(ResponseHeader(correlation_id=correlation_id), apis.response_header_version(api_key, version))
        body = encode(response, version)
        self.transport.write([(len(header) + len(body)).to_bytes(4, "big") + header + body])


def _is_enough(request: FetchRequest, response: FetchResponse) -> bool:
    parts = [part for topic in response.responses for part in topic.partitions]
    size = sum(len(part.records or b"") for part in parts)
    return any(part.error_code for part in parts) or size >= max(request.min_bytes, 1)
