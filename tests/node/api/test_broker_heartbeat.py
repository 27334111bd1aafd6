"""BrokerHeartbeat over the controller listener."""

from quire.metadata.partition_image import PartitionImage
from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, beat, lose_controller, register
from tests.node.conftest import SimulatedNode


def test_a_broker_that_has_caught_up_is_unfenced(node: SimulatedNode) -> None:
    epoch = register(node)
    behind = beat(node, epoch, current_metadata_offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    caught_up = beat(node, epoch)
    assert (caught_up.is_caught_up, caught_up.is_fenced) == (True, False)
    assert node.node.image.brokers[OTHER_ID].is_active


def test_a_silent_broker_is_fenced_and_its_only_replicas_wait_for_it(node: SimulatedNode) -> None:
    epoch = register(node)
    beat(node, epoch)
    node.create_topic("t", partitions=2)
    led = [index for index, each in topic_partitions(node).items() if each.leader == OTHER_ID]
    assert len(led) == 1
    node.clock.run_for(node.node.config.get_int("broker.session.timeout.ms") + 100)
    assert node.node.image.brokers[OTHER_ID].fenced
    assert topic_partitions(node)[led[0]].leader == -1
    assert beat(node, epoch).is_fenced is False
    back = topic_partitions(node)[led[0]]
    assert (back.leader, back.leader_epoch) == (OTHER_ID, 2)


def test_a_stopping_broker_may_leave_when_others_know(node: SimulatedNode) -> None:
    epoch = register(node)
    beat(node, epoch)
    node.create_topic("t", partitions=2)
    assert not beat(node, epoch, want_shut_down=True).should_shut_down
    node.clock.run_for(5_000)
    assert beat(node, epoch, want_shut_down=True).should_shut_down


def test_heartbeats_of_an_old_or_unknown_registration_are_refused(node: SimulatedNode) -> None:
    assert beat(node, 3).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    epoch = register(node)
    assert beat(node, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_that_is_not_active_says_so(node: SimulatedNode) -> None:
    epoch = register(node)
    lose_controller(node)
    assert beat(node, epoch).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_send_heartbeats(node: SimulatedNode) -> None:
    epoch = register(node)
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert beat(node, epoch).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def topic_partitions(node: SimulatedNode) -> dict[int, PartitionImage]:
    return node.node.image.topics_by_name["t"].partitions
