"""InitProducerId: ids for idempotent producers, and epochs for transactional ones."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.node.producer_ids import NO_ID
from quire.pending import completed
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def init(node: SimulatedNode, transactional_id: str | None = None) -> tuple[int, int, int]:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000)
    answer = node.call(request, 5, InitProducerIdResponse)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_every_idempotent_producer_gets_its_own_id(node: SimulatedNode) -> None:
    answers = [init(node) for _ in range(3)]
    assert [(code, epoch) for code, _, epoch in answers] == [(ErrorCode.NONE, 0)] * 3
    assert len({producer_id for _, producer_id, _ in answers}) == 3


def test_a_transactional_producer_keeps_its_id_and_gets_the_next_epoch(coordinator: SimulatedNode) -> None:
    code, producer_id, epoch = init(coordinator, "mover")
    assert code == ErrorCode.NONE
    assert init(coordinator, "mover") == (ErrorCode.NONE, producer_id, epoch + 1)


def test_a_producer_retries_while_the_controller_has_no_ids(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.node.producer_ids.ProducerIds.next_id", lambda _: completed(NO_ID))
    assert init(node) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)


def test_idempotent_writing_must_be_allowed(node: SimulatedNode) -> None:
    deny(node, (AclOperation.IDEMPOTENT_WRITE, CLUSTER_NAME))
    assert init(node) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1, -1)


def test_a_transactional_id_that_may_not_be_used_is_refused(coordinator: SimulatedNode) -> None:
    deny(coordinator, (AclOperation.WRITE, "mover"))
    assert init(coordinator, "mover") == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)
