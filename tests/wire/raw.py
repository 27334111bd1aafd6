"""Single requests to one partition, in any version, for tests without a client."""

from typing import Any

from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from quire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.testing import WireConnection

NAMES_UP_TO = 12
"""The last version of Produce and Fetch that names topics; later ones give their ids."""
MEGABYTE = 1 << 20


def topic_metadata(connection: WireConnection, topic: str) -> MetadataResponseTopic:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = connection.call(asked, 12, MetadataResponse).topics
    return found


def produce_request(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 5000
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(
    connection: WireConnection, topic: str, records: bytes | None, *, version: int = NAMES_UP_TO, **more: Any
) -> PartitionProduceResponse:
    request = produce_request(topic, records, **more)
    if version > NAMES_UP_TO:
        request.topic_data[0].topic_id = topic_metadata(connection, topic).topic_id
    answer = connection.call(request, version, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def fetch_request(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 * MEGABYTE,
    partition_max_bytes: int = MEGABYTE,
    leader_epoch: int = -1,
) -> FetchRequest:
    asked = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def fetch(
    connection: WireConnection, topic: str, offset: int = 0, *, version: int = NAMES_UP_TO, **more: Any
) -> PartitionData:
    """The response of one partition to a fetch outside any session."""
    request = fetch_request(topic, offset, **more)
    if version > NAMES_UP_TO:
        request.topics[0].topic_id = topic_metadata(connection, topic).topic_id
    answer = connection.call(request, version, FetchResponse)
    assert answer.error_code == 0
    return answer.responses[0].partitions[0]


def records_of(found: PartitionData) -> bytes:
    assert found.records is not None, "records are empty, never null"
    assert not isinstance(found.records, list)
    return bytes(found.records)


def list_offset(
    connection: WireConnection,
    topic: str,
    timestamp: int,
    *,
    version: int = 11,
    partition: int = 0,
    epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
        timeout_ms=5000,
    )
    return connection.call(request, version, ListOffsetsResponse).topics[0].partitions[0]


def new_producer_id(connection: WireConnection) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = connection.call(request, 4, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    return answer.producer_id
