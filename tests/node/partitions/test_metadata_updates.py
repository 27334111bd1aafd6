"""What a leader may commit while it applies several related changes of the metadata."""

from typing import NamedTuple

import pytest

from quire.metadata.image import BROKER, TOPIC
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata_records import ConfigRecord, PartitionChangeRecord
from quire.protocol.records import Record, build_batch
from quire.protocol.schema import Message
from quire.replication.commit_wait import CommitWait
from quire.replication.leader_role import LeaderRole
from tests.node.replicas.replicated import Replicated

NAME = "inherits"


class Batch(NamedTuple):
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: list[Message]


class Lagging(Replicated):
    """A leader appends a record that no follower has, and learns of several changes at once.

    Its topic has the cluster's min.insync.replicas, which is `min_isr` at first.
    """

    def __init__(self, min_isr: int) -> None:
        super().__init__(min_insync_replicas=str(min_isr))
        self.create(NAME, [1, 2, 3])
        self.until(lambda: all(any(each.topic == NAME for each in node.partitions) for node in self.nodes.values()))
        self.role = self.leader(NAME)
        assert self.role.partition.node_id == 1
        self.told: list[dict[LeaderRole, ErrorCode]] = []

    def write(self) -> None:
        now_ms = self.clock.now_ms()
        self.role.append(build_batch([Record(0, now_ms, None, b"only here")]), True, now_ms)
        wait = CommitWait()
        wait.when_done(self.told.append)
        wait.wait_for(self.role, 1, acks_all=True)

    def learn(self, *records: Message) -> None:
        """Delivers `records` of the metadata log to node 1, all of them in one update."""
        loader = self.nodes[1].metadata.loader
        image = loader.image
        loader.apply([Batch(image.offset + 1, image.epoch, image.timestamp_ms, list(records))])

    def changed(self, isr: list[int], elr: list[int], leader: int = -2) -> PartitionChangeRecord:
        partition = self.role.partition
        return PartitionChangeRecord(
            partition_id=0, topic_id=partition.topic_id, isr=isr, eligible_leader_replicas=elr, leader=leader
        )


def minimum(value: int, resource: int) -> ConfigRecord:
    name = NAME if resource == TOPIC else ""
    return ConfigRecord(resource_type=resource, resource_name=name, name="min.insync.replicas", value=str(value))


@pytest.mark.parametrize("resource", [TOPIC, BROKER], ids=["topic", "cluster"])
@pytest.mark.parametrize("settings_first", [True, False])
def test_a_smaller_isr_commits_nothing_by_the_minimum_that_was_lower_before(
    resource: int, settings_first: bool
) -> None:
    """The eligible replicas lack the record, and one of them may be elected."""
    nodes = Lagging(min_isr=1)
    nodes.write()
    records = [minimum(2, resource), nodes.changed([1], [2, 3])]
    nodes.learn(*(records if settings_first else records[::-1]))
    assert nodes.role.partition.settings.min_insync_replicas == 2
    assert nodes.role.followers.is_under_min_isr
    assert nodes.role.partition.high_watermark == 0
    assert nodes.told == []


@pytest.mark.parametrize("resource", [TOPIC, BROKER], ids=["topic", "cluster"])
def test_a_leader_that_was_replaced_commits_nothing_by_a_lower_minimum(resource: int) -> None:
    """The minimum was lowered when another replica led already."""
    nodes = Lagging(min_isr=2)
    nodes.write()
    nodes.learn(nodes.changed([1], [2, 3]))
    assert nodes.role.followers.is_under_min_isr
    nodes.learn(nodes.changed([2], [], leader=2), minimum(1, resource))
    assert nodes.told == [{nodes.role: ErrorCode.NOT_LEADER_OR_FOLLOWER}]
    assert nodes.role.partition.high_watermark == 0


@pytest.mark.parametrize("resource", [TOPIC, BROKER], ids=["topic", "cluster"])
def test_a_lower_minimum_commits_what_has_waited_for_it(resource: int) -> None:
    nodes = Lagging(min_isr=2)
    nodes.write()
    nodes.learn(nodes.changed([1], [2, 3]))
    assert nodes.told == []
    nodes.learn(nodes.changed([1], []), minimum(1, resource))
    assert nodes.told == [{}]
    assert nodes.role.partition.high_watermark == 1
