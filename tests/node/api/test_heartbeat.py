"""Heartbeat: a member stays in its group, also while the coordinator replays its log."""

import pytest

from quire.coordinators.runtime.shard import Shard
from quire.node.authorizer import AclOperation
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.node.api.classic_member import GROUP, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def heartbeat(node: SimulatedNode, member_id: str, generation_id: int = 1) -> int:
    request = HeartbeatRequest(group_id=GROUP, generation_id=generation_id, member_id=member_id)
    return node.call(request, 4, HeartbeatResponse).error_code


def test_only_a_member_of_the_current_generation_stays(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    assert heartbeat(coordinator, joined.member_id) == ErrorCode.NONE
    assert heartbeat(coordinator, joined.member_id, joined.generation_id + 1) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(coordinator, "somebody") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_member_need_not_know_that_the_coordinator_is_loading(
    coordinator: SimulatedNode, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, expected: ErrorCode
) -> None:
    joined = stable(coordinator)

    def refuse(*_: object) -> None:
        raise ApiError(code, "not now")

    monkeypatch.setattr(Shard, "run", refuse)
    assert heartbeat(coordinator, joined.member_id) == expected


def test_a_group_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    deny(coordinator, (AclOperation.READ, GROUP))
    assert heartbeat(coordinator, joined.member_id) == ErrorCode.GROUP_AUTHORIZATION_FAILED
