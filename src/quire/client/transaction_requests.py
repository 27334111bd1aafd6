"""The requests of a transactional producer to coordinators, in both protocols, and what their errors mean.

In protocol 1 a producer adds partitions and groups to its transaction before it writes to them. In protocol 2 (KIP-890)
the brokers do that with the first write, and the end of every transaction gives the producer its next epoch.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from quire.client.batch import Identity
from quire.client.connection import Versions
from quire.client.group_offsets import Committer, OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from quire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TRANSACTION_VERSION = "transaction.version"
"""The feature whose finalized level says which protocol a cluster uses."""
PROTOCOL_2 = 2

INIT: Versions = (0, 5)
INIT_WITH_IDENTITY: Versions = (3, 5)
ADD_PARTITIONS: Versions = (0, 3)  # later ones are for brokers


class ProtocolVersions(NamedTuple):
    """The versions of requests that belong to a protocol."""

    produce: Versions
    end_txn: Versions
    txn_offset_commit: Versions


VERSIONS_1 = ProtocolVersions(produce=(3, 11), end_txn=(0, 4), txn_offset_commit=(0, 4))
VERSIONS_2 = ProtocolVersions(produce=(12, 13), end_txn=(5, 5), txn_offset_commit=(5, 5))


class Fate(Enum):
    DONE = auto()
    AGAIN = auto()  # nothing was done, and a retry may succeed
    BROKEN = auto()  # this transaction cannot be committed
    DEAD = auto()  # this producer cannot continue


FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
DEADLY = frozenset(
    (
        *FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    )
)


def fate_of(codes: Iterable[int]) -> tuple[Fate, ErrorCode]:
    """What a response with these error codes means, and the code that decides it."""
    refusals = [ErrorCode(code) for code in codes if code]
    # If one partition is refused, the others are not attempted; their error says nothing about them.
    refusals = [code for code in refusals if code != ErrorCode.OPERATION_NOT_ATTEMPTED] or refusals
    if not refusals:
        return Fate.DONE, ErrorCode.NONE
    for code in refusals:
        if code in DEADLY:
            return Fate.DEAD, code
    for code in refusals:
        if not code.retriable:
            return Fate.BROKEN, code
    return Fate.AGAIN, refusals[0]


def init_request(transactional_id: str, timeout_ms: int, identity: Identity | None) -> InitProducerIdRequest:
    """With an identity it requests the next epoch of that identity; without one, it replaces the current producer."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    if identity is not None:
        request.producer_id, request.producer_epoch = identity
    return request


def add_partitions_request(
    transactional_id: str, identity: Identity, topic_partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for topic_partition in topic_partitions:
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
        ],
    )


def add_offsets_request(transactional_id: str, identity: Identity, group_id: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group_id,
    )


def txn_offset_commit_request(
    transactional_id: str,
    identity: Identity,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    member: Committer,
) -> TxnOffsetCommitRequest:
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for topic_partition, (offset, metadata, leader_epoch) in offsets.items():
        topics.setdefault(topic_partition.topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=topic_partition.partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        generation_id=member.epoch,
        member_id=member.member_id,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )


def end_request(transactional_id: str, identity: Identity, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=committed,
    )
