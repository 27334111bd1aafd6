"""A member of a group that commits what it reads, record by record, and remembers which commits were acknowledged."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Self

import confluent_kafka

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.crash.verdict import Verdict
from tests.wire.clients import eventually
from tests.wire.group_members import ConfluentMember, Partition
from tests.wire.raw_offsets import committed

EVERY = 10
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"assignor": "range"},
    "cooperative-sticky": {"assignor": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
QUICK_TO_RETURN: dict[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "metadata.recovery.strategy": "none",
}
"""Settings with which members reconnect soon after their only broker has restarted."""
SHORT_SESSION = {"session.timeout.ms": 3000}
"""If a member left a classic group in a rebalance that the crash interrupted, the group waits for it afterwards."""


class CommittingMember(ConfluentMember):
    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> None:
        self.acknowledged: dict[Partition, int] = {}
        """The last acknowledged committed offset of each partition."""
        self.commits = 0
        is_classic = settings.get("group.protocol") != "consumer"
        chosen = QUICK_TO_RETURN | (SHORT_SESSION if is_classic else {}) | settings
        super().__init__(bootstrap, group, topics, **chosen)

    def _take(self, consumer: Any, message: Any) -> None:
        super()._take(consumer, message)
        if message.error() is not None or len(self.received) % EVERY:
            return
        try:
            (topic_partition,) = consumer.commit(message=message, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # no answer, or an error: nothing was acknowledged
        if topic_partition.error is None:
            self.acknowledged[topic_partition.topic, topic_partition.partition] = topic_partition.offset
            self.commits += 1


class Members(ExitStack):
    """All members that one group has ever had; those that have not left are closed at the end."""

    def __init__(self, bootstrap: str, group: str, topic: str, settings: dict[str, Any]) -> None:
        super().__init__()
        self.everyone: list[CommittingMember] = []
        self._bootstrap, self._group, self._topic, self._settings = bootstrap, group, topic, settings

    def __enter__(self) -> Self:
        return self

    def join(self) -> CommittingMember:
        made = CommittingMember(self._bootstrap, self._group, [self._topic], **self._settings)
        self.callback(made.close)
        self.everyone.append(made)
        return made


def promised(members: Iterable[CommittingMember]) -> dict[Partition, int]:
    """The highest acknowledged committed offset of each partition, from any member."""
    furthest: dict[Partition, int] = {}
    for each in members:
        for partition, offset in list(each.acknowledged.items()):
            furthest[partition] = max(offset, furthest.get(partition, 0))
    return furthest


def kept(bootstrap: str, group: str, topic_partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The committed offsets, as soon as the coordinator has loaded them."""
    with WireConnection(bootstrap) as connection:
        found: dict[Partition, int] = {}

        def answered() -> bool:
            for topic_partition in topic_partitions:
                answer = committed(connection, group, *topic_partition, version=7)
                if answer.error_code != ErrorCode.NONE:
                    return False
                found[topic_partition] = answer.committed_offset
            return True

        eventually(lambda: _or_false(answered))
        return found


def assert_no_commit_is_lost(bootstrap: str, group: str, members: Sequence[CommittingMember]) -> None:
    """Asks the coordinator. A partition whose offset is below an acknowledged one has lost that commit."""
    acknowledged = sum(each.commits for each in members)
    before = promised(members)
    after = kept(bootstrap, group, before)
    lost = sum(after[partition] < offset for partition, offset in before.items())
    Verdict(acknowledged=acknowledged, lost=lost).assert_clean()


def _or_false(answered: Any) -> bool:
    try:
        return bool(answered())
    except AssertionError:  # COORDINATOR_LOAD_IN_PROGRESS is an error of the whole response
        return False
