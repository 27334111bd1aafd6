"""Produce requests, and what the responses mean for each batch: delivered, retry, or failed."""

from typing import NamedTuple

from quire.client.errors import UnreachableError, UnsupportedError
from quire.client.metadata import Metadata
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.protocol.schema import Message
from quire.seams import Buffer

# The leader has moved, or the topic was changed: refresh the metadata before the retry.
_MOVED = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
# The batch may have been appended although the response is an error.
_UNCERTAIN = frozenset((ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
# The broker no longer has the state of this producer; a new epoch starts it again.
_FORGOTTEN = frozenset((ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH))


class Verdict(NamedTuple):
    """`uncertain`: the batch may be in the log. `new_epoch`: the sequence numbers must start again at 0 first."""

    error: Exception | None = None
    retry: bool = False
    uncertain: bool = False
    refresh: bool = False
    new_epoch: bool = False
    base_offset: int = -1
    timestamp_ms: int = -1


def produce_request(
    metadata: Metadata,
    batches: list[tuple[TopicPartition, Buffer]],
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> ProduceRequest:
    topics: dict[str, TopicProduceData] = {}
    for topic_partition, records in batches:
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = TopicProduceData(
                name=topic_partition.topic, topic_id=metadata.topics[topic_partition.topic].topic_id
            )
            topics[topic_partition.topic] = topic
        topic.partition_data.append(PartitionProduceData(index=topic_partition.partition, records=records))
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values())
    )


def read_responses(
    metadata: Metadata, outcome: Message | Exception | None
) -> dict[TopicPartition, PartitionProduceResponse]:
    """The responses by partition; also applies the leaders that the broker named to the metadata (KIP-951)."""
    answers: dict[TopicPartition, PartitionProduceResponse] = {}
    if not isinstance(outcome, ProduceResponse):
        return answers
    for topic in outcome.responses:
        name = topic.name or metadata.names_by_id.get(topic.topic_id, "")
        for answer in topic.partition_responses:
            answers[TopicPartition(name, answer.index)] = answer
            leader = answer.current_leader
            if leader.leader_id >= 0:
                metadata.new_leader(name, answer.index, leader.leader_id, leader.leader_epoch)
    return answers


def judge(answer: PartitionProduceResponse | None, outcome: Message | Exception | None, oldest: bool) -> Verdict:
    """What to do with a batch; `oldest` says that no batch before it is in flight."""
    if outcome is None:
        return Verdict()  # acks=0: there is no response
    if isinstance(outcome, Exception):
        # A batch that was not sent is not in the log. A broker that does not support the request never will.
        sent = not isinstance(outcome, UnreachableError)
        return Verdict(outcome, retry=not isinstance(outcome, UnsupportedError), uncertain=sent, refresh=True)
    if answer is None:
        missing = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left the partition out of its response")
        return Verdict(missing, retry=True, uncertain=True, refresh=True)
    code = ErrorCode(answer.error_code)
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict(base_offset=answer.base_offset, timestamp_ms=answer.log_append_time_ms)
    error = ApiError(code, _sentence(answer, code))
    if code in _FORGOTTEN:
        return Verdict(error, retry=True, new_epoch=True)
    if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        # Behind a batch that has failed, this error only follows from that failure.
        return Verdict(error, retry=not oldest)
    return Verdict(error, retry=code.retriable, uncertain=code in _UNCERTAIN, refresh=code in _MOVED)


def _sentence(answer: PartitionProduceResponse, code: ErrorCode) -> str:
    text = answer.error_message or f"the broker answered {code.name}"
    for record in answer.record_errors:
        if record.batch_index_error_message:
            return f"{text} (record {record.batch_index} of the batch: {record.batch_index_error_message})"
    return text
