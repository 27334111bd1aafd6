"""Consumer groups as a whole: what they replay, what they show, and what they accept from hostile clients."""

import pytest

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.member import CurrentAssignment, Member, MemberState, Subscription
from quire.coordinators.group.group import Group
from quire.coordinators.runtime.record import Origin, StateRecord, tombstone
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import group_records as messages
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinators.group.consumer.consumer_shard import (
    GROUP,
    ConsumerShard,
    assigned,
    beat,
    join,
    topic_id,
)

ORDERS = topic_id("orders", -1)


@pytest.fixture
def shard() -> ConsumerShard:
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0"})
    shard.put_topic("orders", 4)
    return shard


def replay(shard: ConsumerShard, *written: StateRecord) -> None:
    for record in written:
        shard.machine.replay(record, Origin(0))


def answered(answer: ConsumerGroupHeartbeatResponse | ApiError) -> ConsumerGroupHeartbeatResponse:
    assert not isinstance(answer, ApiError), answer.message
    return answer


def refused(answer: ConsumerGroupHeartbeatResponse | ApiError) -> ErrorCode:
    assert isinstance(answer, ApiError)
    return answer.code


# --- Replay


def test_a_group_is_replayed_from_its_records_in_any_order_that_compaction_leaves(shard: ConsumerShard) -> None:
    current = CurrentAssignment(7, 6, MemberState.STABLE, {ORDERS: {0: 5}})
    written = [
        records.current_assignment(GROUP, "alice", current),
        records.target_metadata(GROUP, 7, 1000),
        records.member_metadata(GROUP, "alice", Subscription("client", "/host", ("orders",))),
        records.group_metadata(GROUP, 7, 42),
        records.target_assignment(GROUP, "alice", {ORDERS: frozenset([0])}),
    ]
    replay(shard, *written)
    forwards = shard.group
    shard.groups.clear()
    replay(shard, *reversed(written))
    for group in (forwards, shard.group):
        assert group.members == {"alice": Member("alice", Subscription("client", "/host", ("orders",)), current)}
        assert group.owners == {ORDERS: {0: "alice"}}
        assert group.targets == {"alice": {ORDERS: frozenset([0])}}
        assert (group.group_epoch, group.assignment_epoch, group.metadata_hash) == (7, 7, 42)


def test_tombstones_of_what_is_not_known_are_ignored(shard: ConsumerShard) -> None:
    replay(
        shard,
        *records.member_tombstones(GROUP, "alice"),
        records.regular_expression_tombstone(GROUP, ".*"),
        *records.group_tombstones(GROUP, ["alice"], [".*"], has_partition_metadata=True),
    )
    assert GROUP not in shard.groups
    replay(shard, records.group_metadata(GROUP, 3, 0), *records.member_tombstones(GROUP, "alice"))
    assert shard.group.members == {}


def test_a_partition_that_changed_hands_belongs_to_its_new_owner(shard: ConsumerShard) -> None:
    """Bob's record is older than alice's, in which she no longer has the partition."""
    replay(
        shard,
        records.current_assignment(GROUP, "alice", CurrentAssignment(2, 0, MemberState.STABLE, {ORDERS: {0: 2, 1: 2}})),
        records.current_assignment(GROUP, "bob", CurrentAssignment(3, 0, MemberState.STABLE, {ORDERS: {1: 3}})),
        records.current_assignment(GROUP, "alice", CurrentAssignment(3, 2, MemberState.STABLE, {ORDERS: {0: 2}})),
    )
    assert shard.group.owners == {ORDERS: {0: "alice", 1: "bob"}}


def test_records_from_before_assignment_epochs_count_from_the_members_epoch(shard: ConsumerShard) -> None:
    replay(
        shard,
        StateRecord(
            messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="alice"),
            messages.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=9,
                previous_member_epoch=8,
                assigned_partitions=[messages.TopicPartitions(topic_id=ORDERS, partitions=[2, 1])],
            ),
        ),
    )
    assert shard.group.members["alice"].current.assigned == {ORDERS: {1: 9, 2: 9}}


def test_the_topics_that_older_coordinators_wrote_down_are_taken_back(shard: ConsumerShard) -> None:
    replay(
        shard,
        records.group_metadata(GROUP, 3, 0),
        StateRecord(
            messages.ConsumerGroupPartitionMetadataKey(group_id=GROUP), messages.ConsumerGroupPartitionMetadataValue()
        ),
    )
    written: list[StateRecord] = []
    shard.on_append = written.append
    answered(shard.heartbeat(join("alice", "orders")))
    assert [
        record.value for record in written if isinstance(record.key, messages.ConsumerGroupPartitionMetadataKey)
    ] == [None]
    assert not shard.group.has_partition_metadata


def test_a_state_of_a_newer_coordinator_is_survived(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="alice")
    replay(shard, StateRecord(key, messages.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, state=99)))
    assert refused(shard.heartbeat(beat("alice", 2))) is ErrorCode.FENCED_MEMBER_EPOCH
    assert answered(shard.heartbeat(beat("alice", 2, {}))).member_epoch == 2


def test_a_member_in_a_state_of_a_newer_coordinator_may_join_again(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="alice")
    replay(shard, StateRecord(key, messages.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, state=99)))
    assert refused(shard.heartbeat(beat("alice", 2))) is ErrorCode.FENCED_MEMBER_EPOCH
    assert assigned(answered(shard.heartbeat(join("alice", "orders")))) == {ORDERS: {0, 1, 2, 3}}


def test_a_refused_request_changes_nothing(shard: ConsumerShard) -> None:
    """The topics changed, but the heartbeat that would have noticed was refused: the next one notices."""
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(join("bob")))
    key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="alice")
    replay(shard, StateRecord(key, messages.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, state=99)))
    shard.put_topic("orders", 8)
    assert refused(shard.heartbeat(beat("alice", 2))) is ErrorCode.FENCED_MEMBER_EPOCH
    answered(shard.heartbeat(beat("bob", 2)))
    assert shard.group.group_epoch == 3


def test_a_deleted_group_stays_deleted_after_a_reload(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", subscribed_topic_regex="orders", subscribed_topic_names=None)))
    answered(shard.heartbeat(beat("alice", -1)))
    shard.run(lambda now_ms: CoordinatorResult(None, shard.group.tombstones()))
    assert GROUP not in shard.groups
    shard.reload()
    assert GROUP not in shard.groups


# --- Beside other groups


def test_a_group_describes_itself(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders", subscribed_topic_regex="pay.*")))
    group: Group = shard.group
    assert (group.protocol_type, group.type.value, group.state_name, group.is_empty) == (
        "consumer",
        "consumer",
        "Stable",
        False,
    )
    shard.put_topic("payments", 1)
    shard.wait(10_000)
    answered(shard.heartbeat(beat("alice", 2)))
    assert [topic for topic in ("orders", "payments", "refunds") if group.is_subscribed_to(topic)] == [
        "orders",
        "payments",
    ]
    assert group.offsets_unused_since(1234) == 1234


def test_a_described_group_has_its_members_with_what_they_have_and_should_have(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders", rack_id="r1", instance_id="one")))
    answered(shard.heartbeat(join("bob", "orders", server_assignor="range")))
    shown = shard.describe()
    assert (shown.group_id, shown.group_state, shown.assignor_name) == (GROUP, "Reconciling", "range")
    alice, bob = shown.members
    assert (alice.member_id, alice.instance_id, alice.rack_id, alice.member_epoch) == ("alice", "one", "r1", 2)
    assert (alice.client_id, alice.client_host, alice.member_type) == ("client", "/127.0.0.1", 1)
    assert (alice.subscribed_topic_names, alice.subscribed_topic_regex) == (["orders"], "")
    assert [(each.topic_name, each.partitions) for each in alice.assignment.topic_partitions] == [
        ("orders", [0, 1, 2, 3])
    ]
    assert [each.partitions for each in alice.target_assignment.topic_partitions] == [[0, 1]]
    assert bob.assignment.topic_partitions == []
    shard.delete_topic("orders")
    assert shard.describe().members[0].assignment.topic_partitions == []


def test_an_empty_group_of_the_classic_protocol_gives_way(shard: ConsumerShard) -> None:
    shard.groups[GROUP] = ClassicGroup(GROUP, lambda member: None)
    written: list[StateRecord] = []
    shard.on_append = written.append
    answered(shard.heartbeat(join("alice", "orders")))
    assert written[0] == tombstone(messages.GroupMetadataKey(group=GROUP))
    assert list(shard.group.members) == ["alice"]


# --- Malicious clients


def test_owned_partitions_that_do_not_exist_are_not_believed(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(join("bob", "orders")))
    nonsense = {b"?" * 16: {0, 2**31 - 1}, ORDERS: {0, 1, 2, 3, 99}}
    assert assigned(answered(shard.heartbeat(beat("alice", 2, nonsense)))) == {ORDERS: {0, 1}}
    assert answered(shard.heartbeat(beat("alice", 2, nonsense))).member_epoch == 2
    assert shard.group.owners == {ORDERS: dict.fromkeys(range(4), "alice")}


def test_a_partition_named_twice_counts_once(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    request = beat("alice", 2)
    twice = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ORDERS, partitions=[0, 0, 1])
    request.topic_partitions = [twice, twice]
    assert answered(shard.heartbeat(request)).member_epoch == 2


def test_topics_named_twice_are_subscribed_to_once(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders", "orders")))
    assert shard.group.subscribed_names == {"orders": 1}
    answered(shard.heartbeat(beat("alice", -1)))
    assert shard.group.subscribed_names == {}


def test_a_member_of_another_group_is_a_stranger_here(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders", group_id="others")))
    answered(shard.heartbeat(join("bob", "orders")))
    assert refused(shard.heartbeat(beat("alice", 2))) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(shard.heartbeat(beat("alice", 2, group_id="nobody's"))) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(shard.heartbeat(beat("alice", -1, group_id="nobody's"))) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_thousand_members_that_join_at_once_are_all_served(shard: ConsumerShard) -> None:
    shard.put_topic("orders", 1000)
    shard.config.apply_dynamic({"group.consumer.assignment.interval.ms": "1000"}, {})
    for number in range(1000):
        answered(shard.heartbeat(join(f"member-{number}", "orders")))
    shard.wait(1000)
    answered(shard.heartbeat(beat("member-0", 2)))
    assert sorted(len(target.get(ORDERS, ())) for target in shard.group.targets.values()) == [1] * 1000


def test_members_that_come_from_elsewhere_are_noted(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(beat("alice", 2), host="/10.0.0.7"))
    assert shard.group.members["alice"].subscription.client_host == "/10.0.0.7"
    assert shard.group.group_epoch == 2
