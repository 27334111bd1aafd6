"""Followers that copy records found on disk at the start, which a job checks before they are sent."""

import pytest

from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from quire.protocol.records.batch import walk_batches
from quire.replication.members import Members
from tests.node.api.other_nodes import OTHER_ID, beat, register
from tests.node.api.test_fetch_unchecked import damage, fetched, stopped_disk
from tests.node.conftest import SimulatedNode

VERSION = 17
WARM, COLD = "u", "t"
Answered = dict[str, tuple[int, list[int]]]
"""The error of each topic's partition, and the offsets of its batches."""


@pytest.fixture
def leader() -> SimulatedNode:
    return started()


def started(*, damaged: int | None = None) -> SimulatedNode:
    """Broker 2 follows two partitions. One of them has been read since the start."""
    disk = stopped_disk()
    if damaged is not None:
        damage(disk, damaged)
    node = SimulatedNode(disk).start()
    beat(node, register(node))
    for topic in (WARM, COLD):
        node.node.partitions.leader(topic, None, 0).followers.change_members(Members((1, OTHER_ID), (1,), 99))
    fetched(node, WARM)
    return node


def topic_id(node: SimulatedNode, name: str) -> bytes:
    return node.node.image.topics_by_name[name].topic_id


def wanted(node: SimulatedNode, name: str, offset: int) -> FetchPartition:
    epoch = node.node.partitions.leader(name, None, 0).leader_epoch
    return FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch)


def request(node: SimulatedNode, offsets: dict[str, int], session: int = 0, epoch: int = 0) -> FetchRequest:
    topics = [
        FetchTopic(topic_id=topic_id(node, name), partitions=[wanted(node, name, offset)])
        for name, offset in offsets.items()
    ]
    replica = ReplicaState(replica_id=OTHER_ID, replica_epoch=node.node.image.brokers[OTHER_ID].epoch)
    return FetchRequest(
        replica_state=replica,
        max_bytes=1 << 20,
        max_wait_ms=500,
        session_id=session,
        session_epoch=epoch,
        topics=topics,
    )


def answered(node: SimulatedNode, answer: Pending[bytes | None]) -> tuple[int, Answered]:
    """The session id, and the error and offsets for each topic."""
    assert answer.value is not None
    response = codec.decode(FetchResponse, answer.value[5:], VERSION)
    names = {topic.topic_id: name for name, topic in node.node.image.topics_by_name.items()}
    found: Answered = {}
    for topic in response.responses:
        (part,) = topic.partitions
        batches = walk_batches(part.records) if part.records else []  # type: ignore[arg-type]
        found[names[topic.topic_id]] = part.error_code, [batch.base_offset for batch in batches]
    return response.session_id, found


def test_a_partition_that_must_be_checked_holds_up_no_other(leader: SimulatedNode) -> None:
    answer = leader.send(request(leader, {COLD: 0, WARM: 0}), VERSION)
    assert answer.done, "it does not wait for the check"
    session, found = answered(leader, answer)
    assert found == {WARM: (0, [0, 1, 2]), COLD: (0, [])}
    began_ms = leader.clock.monotonic_ms()
    answer = leader.send(request(leader, {WARM: 3}, session, 1), VERSION)
    leader.clock.run_until(lambda: answer.done)
    assert answered(leader, answer)[1] == {COLD: (0, [0, 1, 2])}
    assert leader.clock.monotonic_ms() - began_ms < 100, "the check ends the wait"


def test_a_partition_that_is_asked_for_again_is_checked_once(leader: SimulatedNode) -> None:
    session, _ = answered(leader, leader.send(request(leader, {COLD: 0, WARM: 0}), VERSION))
    for epoch in (1, 2):
        leader.send(request(leader, {COLD: 0, WARM: 0}, session, epoch), VERSION)
    assert leader.jobs.unfinished == 1


def test_a_session_may_end_while_its_partition_is_checked(leader: SimulatedNode) -> None:
    session, _ = answered(leader, leader.send(request(leader, {COLD: 0, WARM: 0}), VERSION))
    leader.node.replicas.sessions.close(session)
    leader.clock.run_until(lambda: leader.jobs.unfinished == 0)
    leader.clock.run_for(100)
    answer = leader.send(request(leader, {COLD: 0}), VERSION)
    assert answered(leader, answer)[1] == {COLD: (0, [0, 1, 2])}
    assert leader.failures == []


def test_what_is_damaged_is_an_error_of_its_partition_alone() -> None:
    leader = started(damaged=0)
    session, found = answered(leader, leader.send(request(leader, {COLD: 0, WARM: 0}), VERSION))
    assert found == {WARM: (0, [0, 1, 2]), COLD: (0, [])}
    answer = leader.send(request(leader, {WARM: 3}, session, 1), VERSION)
    leader.clock.run_until(lambda: answer.done)
    assert answered(leader, answer)[1] == {COLD: (ErrorCode.CORRUPT_MESSAGE, [])}
