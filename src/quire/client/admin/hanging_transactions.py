"""Finds transactions that hang: open in a partition, and nobody is going to end them.

The leader of a partition knows of an open transaction by producer id alone. It hangs when no coordinator knows that
producer id, or the coordinator that does has nothing under way that includes the partition. One that began not long ago
may be on its way to its coordinator still, so only what is older than any transaction may get is looked at.
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
    place: TopicPartition
    producer: ActiveProducer

    @property
    def start_offset(self) -> int:
        offset = self.producer.transaction_start_offset
        assert offset is not None
        return offset


class Owner(NamedTuple):
    """Who a coordinator says is behind an open transaction, and whether the transaction includes the partition."""

    transaction: Transaction | None
    holds: bool


def open_transactions(
    cluster: Cluster, places: Sequence[TopicPartition]
) -> Steps[tuple[list[OpenTransaction], dict[TopicPartition, ApiError]]]:
    """What is open in these partitions, and which of them could not tell."""
    found = yield from describe_producers(cluster, places)
    opened = [
        OpenTransaction(place, producer)
        for place, producers in found.items()
        if not isinstance(producers, ApiError)
        for producer in producers
        if producer.transaction_start_offset is not None
    ]
    opened.sort(key=lambda found: (found.place, found.start_offset))
    return opened, {place: failed for place, failed in found.items() if isinstance(failed, ApiError)}


def find_owners(cluster: Cluster, opened: Sequence[OpenTransaction]) -> Steps[list[Owner]]:
    """The owner of each; raises what keeps a coordinator from telling, because then nobody can say that it hangs."""
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
        Owner(owner, owner is not None and each.place in owner.partitions)
        for each, owner in zip(opened, owners, strict=True)
    ]


def find_hanging(
    cluster: Cluster, places: Sequence[TopicPartition], *, older_than_ms: int
) -> Steps[tuple[list[OpenTransaction], dict[TopicPartition, ApiError]]]:
    """Those of the open transactions in these partitions that hang, and which partitions could not tell."""
    opened, failures = yield from open_transactions(cluster, places)
    latest_ms = cluster.clock.now_ms() - older_than_ms
    old = [found for found in opened if found.producer.last_timestamp_ms <= latest_ms]
    owners = yield from find_owners(cluster, old)
    return [found for found, owner in zip(old, owners, strict=True) if not owner.holds], failures
