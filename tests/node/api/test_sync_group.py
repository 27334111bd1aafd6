"""SyncGroup: the leader's assignment reaches every member."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.sync_group import SyncGroupResponse
from tests.node.api.classic_member import GROUP, join, sync_request
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def test_the_leader_gets_back_its_own_part_of_the_assignment(coordinator: SimulatedNode) -> None:
    answer = coordinator.call(sync_request(join(coordinator)), 5, SyncGroupResponse)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"everything")
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_the_protocol_must_be_the_groups_from_version_5_on(coordinator: SimulatedNode) -> None:
    request = sync_request(join(coordinator))
    request.protocol_name = "roundrobin"
    answer = coordinator.call(request, 5, SyncGroupResponse)
    assert (answer.error_code, answer.assignment) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, b"")
    assert coordinator.call(request, 4, SyncGroupResponse).error_code == ErrorCode.NONE


def test_a_group_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    request = sync_request(join(coordinator))
    deny(coordinator, (AclOperation.READ, GROUP))
    answer = coordinator.call(request, 5, SyncGroupResponse)
    assert (answer.error_code, answer.assignment) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, b"")
