import pytest

from quire.client.admin.groups import delete_groups, describe_groups, list_groups
from quire.client.errors import DisconnectedError, TimedOutError, UnreachableError
from quire.client.group_offsets import OffsetAndMetadata, Offsets, committed_offsets, delete_offsets, set_offsets
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_groups import DeleteGroupsRequest
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest
from quire.protocol.messages.list_groups import ListGroupsRequest
from quire.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.client.model_coordinators import CoordinatedCluster

TOPIC_PARTITION = TopicPartition("t", 0)


def three_groups() -> CoordinatedCluster:
    model = CoordinatedCluster(nodes=3)
    for node, name in enumerate(["a", "b", "c"], 1):
        model.group(name, node, offsets={TOPIC_PARTITION: node})
    return model


def offset_of(found: dict[str, Offsets | ApiError], name: str) -> int:
    offsets = found[name]
    assert not isinstance(offsets, ApiError), offsets
    return offsets[TOPIC_PARTITION].offset


def test_each_coordinator_is_asked_once_for_all_of_its_groups() -> None:
    model = three_groups()
    model.group("also on 1", 1, offsets={TOPIC_PARTITION: 9})
    found = model.run(committed_offsets(model.client(), ["a", "b", "c", "also on 1"]))
    assert [offset_of(found, name) for name in ("a", "b", "c", "also on 1")] == [1, 2, 3, 9]
    assert sorted(model.asked(OffsetFetchRequest)) == [1, 2, 3]
    assert len(model.asked(FindCoordinatorRequest)) == 1


def test_a_coordinator_is_remembered() -> None:
    model = three_groups()
    cluster = model.client()
    for _ in range(3):
        model.run(committed_offsets(cluster, ["a", "b"]))
    assert len(model.asked(FindCoordinatorRequest)) == 1


def test_a_coordinator_that_moved_is_found_again() -> None:
    model = three_groups()
    cluster = model.client()
    model.run(committed_offsets(cluster, ["a", "b"]))
    model.groups["a"].coordinator = 3
    found = model.run(committed_offsets(cluster, ["a", "b"]))
    assert (offset_of(found, "a"), offset_of(found, "b")) == (1, 2)
    assert model.asked(OffsetFetchRequest).count(2) == 2, "a broker that had answered got no second request"


def test_a_coordinator_that_loads_is_asked_until_it_has() -> None:
    model = three_groups()
    model.loading(2, times=4)
    assert offset_of(model.run(committed_offsets(model.client(), ["b"])), "b") == 2
    assert model.clock.monotonic_ms() > 0.8 * (50 + 100 + 200 + 400)


def test_waiting_for_one_group_ends_with_the_request_timeout_and_the_others_are_returned() -> None:
    model = three_groups()
    model.loading(2, times=1000)
    found = model.run(committed_offsets(model.client(request_timeout_ms=3000), ["a", "b", "c"]))
    assert (offset_of(found, "a"), offset_of(found, "c")) == (1, 3)
    refused = found["b"]
    assert isinstance(refused, ApiError) and refused.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert 3000 < model.clock.monotonic_ms() < 10_000


def test_a_coordinator_that_is_down_is_named() -> None:
    model = three_groups()
    model.network.crash("node-2")
    found = model.run(committed_offsets(model.client(request_timeout_ms=3000), ["a", "b"]))
    refused = found["b"]
    assert offset_of(found, "a") == 1
    assert isinstance(refused, ApiError) and refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "node 2" in str(refused)


def test_a_restarted_or_replaced_coordinator_answers() -> None:
    model = three_groups()
    model.network.crash("node-2")
    model.clock.call_later(1000, lambda: setattr(model.groups["b"], "coordinator", 3))
    assert offset_of(model.run(committed_offsets(model.client(), ["b"])), "b") == 2


def test_unreachable_servers_raise_an_error() -> None:
    model = CoordinatedCluster()
    model.network.crash("node-1")
    with pytest.raises(UnreachableError):
        model.run(committed_offsets(model.client(), ["a"]))


def test_a_silent_coordinator_times_out() -> None:
    model = three_groups()
    model.swallow("OffsetFetch")
    with pytest.raises(TimedOutError):
        model.run(committed_offsets(model.client(request_timeout_ms=3000), ["a"]))


def test_a_question_is_asked_again_when_the_connection_breaks() -> None:
    model = three_groups()
    model.carry_out_and_drop("OffsetFetch")
    assert offset_of(model.run(committed_offsets(model.client(), ["a"])), "a") == 1


def test_a_deletion_is_not_repeated_when_its_outcome_is_unknown() -> None:
    model = three_groups()
    model.carry_out_and_drop("DeleteGroups")
    with pytest.raises(DisconnectedError):
        model.run(delete_groups(model.client(), ["a"]))
    assert model.asked(DeleteGroupsRequest) == [1]


def test_offsets_are_committed_and_deleted_through_a_coordinator_that_moved() -> None:
    model = three_groups()
    cluster = model.client()
    model.run(committed_offsets(cluster, ["a"]))
    for coordinator in (2, 3):
        model.groups["a"].coordinator = coordinator
        assert model.run(set_offsets(cluster, "a", {TOPIC_PARTITION: OffsetAndMetadata(40 + coordinator)})) == {
            TOPIC_PARTITION: None
        }
        assert model.groups["a"].offsets == {TOPIC_PARTITION: 40 + coordinator}
    model.groups["a"].coordinator = 1
    assert model.run(delete_offsets(cluster, "a", [TOPIC_PARTITION])) == {TOPIC_PARTITION: None}
    assert model.groups["a"].offsets == {}


def test_committing_from_outside_while_there_are_members_says_so() -> None:
    model = CoordinatedCluster()
    model.group("busy", state="Stable")
    refused = model.run(set_offsets(model.client(), "busy", {TOPIC_PARTITION: OffsetAndMetadata(1)}))[TOPIC_PARTITION]
    assert refused is not None and refused.code == ErrorCode.NON_EMPTY_GROUP
    assert "busy has members" in str(refused)


def test_offsets_of_a_group_that_does_not_exist_are_none_and_cannot_be_deleted() -> None:
    model = CoordinatedCluster()
    assert model.run(committed_offsets(model.client(), ["nobody"])) == {"nobody": {}}
    with pytest.raises(ApiError) as caught:
        model.run(delete_offsets(model.client(), "nobody", [TOPIC_PARTITION]))
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_of_all_coordinators_are_listed_by_name() -> None:
    model = three_groups()
    model.loading(2, times=2)
    groups, failure = model.run(list_groups(model.client()))
    assert failure is None
    assert [(group.group_id, group.protocol, group.coordinator) for group in groups] == [
        ("a", "classic", 1),
        ("b", "classic", 2),
        ("c", "classic", 3),
    ]
    assert sorted(model.asked(ListGroupsRequest)) == [1, 2, 2, 2, 3], "a broker that had answered got no second request"


def test_an_unreachable_broker_makes_the_list_incomplete_and_this_is_reported() -> None:
    model = three_groups()
    model.network.crash("node-2")
    model.loading(3, times=2)
    groups, failure = model.run(list_groups(model.client()))
    assert [group.group_id for group in groups] == ["a", "c"]
    assert isinstance(failure, UnreachableError)


def test_groups_of_both_protocols_are_described_together_in_the_order_asked_for() -> None:
    model = three_groups()
    model.group("new", 2, protocol="consumer", state="Stable")
    found = model.run(describe_groups(model.client(), ["c", "new", "none", "a"]))
    assert list(found) == ["c", "new", "none", "a"]
    shown = {
        name: (group.protocol, group.state, group.coordinator, group.epoch)
        for name, group in found.items()
        if not isinstance(group, ApiError)
    }
    assert shown == {
        "c": ("classic", "Empty", 3, None),
        "new": ("consumer", "Stable", 2, 7),
        "a": ("classic", "Empty", 1, None),
    }
    missing = found["none"]
    assert isinstance(missing, ApiError) and missing.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_broker_from_before_the_consumer_protocol_describes_classic_groups() -> None:
    model = three_groups()
    del model.versions[69]
    found = model.run(describe_groups(model.client(), ["a"]))["a"]
    assert not isinstance(found, ApiError) and found.protocol == "classic"
