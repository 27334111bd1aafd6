"""Finds hanging transactions: they are open in a partition, and no coordinator will end them.

The leader of a partition knows an open transaction only by its producer id. The transaction hangs if no coordinator
knows that producer id, or if the coordinator's transaction does not include the partition. A recent transaction may not
have been added at its coordinator yet, so only those are checked that are older than the longest transaction time-out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quire.client.admin.partition_producers import ActiveProducer, describe_producers
from quire.client.admin.transactions import Transaction, describe_transactions, list_transactions
from quire.client.cluster import Cluster
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.steps import Steps


class OpenTransaction(NamedTuple):
    topic_partition: TopicPartition
    producer: ActiveProducer

    @property
    def start_offset(self) -> int:
        offset = self.producer.transaction_start_offset
        assert offset is not None
        return offset


class Owner(NamedTuple):
    """The transaction that a coordinator knows for a producer id, and whether it includes the partition."""

    transaction: Transaction | None
    holds: bool


def open_transactions(
    cluster: Cluster, topic_partitions: Sequence[TopicPartition]
) -> Steps[tuple[list[OpenTransaction], dict[TopicPartition, ApiError]]]:
    """The open transactions in these partitions, and the errors of partitions that could not be described."""
    found = yield from describe_producers(cluster, topic_partitions)
    opened = [
        OpenTransaction(topic_partition, producer)
        for topic_partition, producers in found.items()
        if not isinstance(producers, ApiError)
        for producer in producers
        if producer.transaction_start_offset is not None
    ]
    opened.sort(key=lambda found: (found.topic_partition, found.start_offset))
    return opened, {
        topic_partition: failed for topic_partition, failed in found.items() if isinstance(failed, ApiError)
    }


def find_owners(cluster: Cluster, opened: Sequence[OpenTransaction]) -> Steps[list[Owner]]:
    """The owner of each; raises if a coordinator cannot answer, because then a transaction may not be hanging."""
    producer_ids = sorted({found.producer.producer_id for found in opened})
    if not producer_ids:
        return []
    listed, failure = yield from list_transactions(cluster, producer_ids=producer_ids)
    if failure is not None:
        raise failure
    described = yield from describe_transactions(cluster, [found.transactional_id for found in listed])
    for result in described.values():
        if isinstance(result, ApiError):
            raise result
    known = {found.producer_id: found for found in described.values() if isinstance(found, Transaction)}
    owners = [known.get(each.producer.producer_id) for each in opened]
    return [
        Owner(owner, owner is not None and each.topic_partition in owner.partitions)
        for each, owner in zip(opened, owners, strict=True)
    ]


def find_hanging(
    cluster: Cluster, topic_partitions: Sequence[TopicPartition], *, older_than_ms: int
) -> Steps[tuple[list[OpenTransaction], dict[TopicPartition, ApiError]]]:
    """The hanging transactions in these partitions, and the errors of partitions that could not be described."""
    opened, failures = yield from open_transactions(cluster, topic_partitions)
    latest_ms = cluster.clock.now_ms() - older_than_ms
    old = [found for found in opened if found.producer.last_timestamp_ms <= latest_ms]
    owners = yield from find_owners(cluster, old)
    return [found for found, owner in zip(old, owners, strict=True) if not owner.holds], failures
