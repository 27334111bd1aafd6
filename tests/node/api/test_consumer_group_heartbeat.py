"""ConsumerGroupHeartbeat: joins a consumer group if the cluster has such groups."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

GROUP = "readers"
UNSAFE_DOWNGRADE = 3


def heartbeat(node: SimulatedNode) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="alice",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    return node.call(request, 1, ConsumerGroupHeartbeatResponse)


def test_the_first_member_gets_all_partitions(coordinator: SimulatedNode) -> None:
    answer = heartbeat(coordinator)
    assert (answer.error_code, answer.error_message, answer.member_epoch) == (ErrorCode.NONE, None, 2)
    assert answer.assignment is not None
    (topic,) = answer.assignment.topic_partitions
    known = coordinator.node.image.topic("t")
    assert known is not None
    assert (topic.topic_id, topic.partitions) == (known.topic_id, [0, 1])


def test_a_cluster_without_consumer_groups_refuses_with_the_way_out(coordinator: SimulatedNode) -> None:
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=UNSAFE_DOWNGRADE)
    changed = coordinator.call(UpdateFeaturesRequest(feature_updates=[update]), 2, UpdateFeaturesResponse)
    assert changed.error_code == ErrorCode.NONE, changed.error_message
    answer = heartbeat(coordinator)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "this cluster has classic groups only: raise group.version to 1, or use group.protocol=classic"
    )


def test_a_group_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    deny(coordinator, (AclOperation.READ, GROUP))
    answer = heartbeat(coordinator)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert answer.error_message == "using group readers is not allowed"
