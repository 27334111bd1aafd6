"""AllocateProducerIds over the controller listener."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, ask_controller, lose_controller, register
from tests.node.conftest import SimulatedNode


def allocate(node: SimulatedNode, epoch: int) -> AllocateProducerIdsResponse:
    request = AllocateProducerIdsRequest(broker_id=OTHER_ID, broker_epoch=epoch)
    return ask_controller(node, request, 0, AllocateProducerIdsResponse)


def test_brokers_get_blocks_that_do_not_overlap(node: SimulatedNode) -> None:
    own = node.call(InitProducerIdRequest(transactional_id=None), 5, InitProducerIdResponse).producer_id
    epoch = register(node)
    blocks = [(each.producer_id_start, each.producer_id_len) for each in (allocate(node, epoch), allocate(node, epoch))]
    assert (own, blocks) == (0, [(1000, 1000), (2000, 1000)])
    again = node.call(InitProducerIdRequest(transactional_id=None), 5, InitProducerIdResponse).producer_id
    assert again == 1


def test_an_old_or_unknown_registration_gets_no_ids(node: SimulatedNode) -> None:
    assert allocate(node, 4).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    epoch = register(node)
    assert allocate(node, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_that_is_not_active_allocates_nothing(node: SimulatedNode) -> None:
    epoch = register(node)
    lose_controller(node)
    assert allocate(node, epoch).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_get_blocks(node: SimulatedNode) -> None:
    epoch = register(node)
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert allocate(node, epoch).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
