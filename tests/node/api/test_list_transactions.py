"""ListTransactions: the transactional ids that pass the filters and that the client may see."""

import pytest

from quire.coordinators.runtime.shard import Shard
from quire.node.authorizer import AclOperation
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import TransactionalProducer


@pytest.fixture
def node(coordinator: SimulatedNode) -> SimulatedNode:
    """With an open transaction and a producer that has none."""
    TransactionalProducer(coordinator, "busy").start().produce(0)
    TransactionalProducer(coordinator, "idle").start()
    return coordinator


def listed(node: SimulatedNode, request: ListTransactionsRequest | None = None) -> dict[str, str]:
    answer = node.call(request or ListTransactionsRequest(), 2, ListTransactionsResponse)
    assert answer.error_code == ErrorCode.NONE
    return {state.transactional_id: state.transaction_state for state in answer.transaction_states}


def test_ids_are_listed_by_state_and_pattern(node: SimulatedNode) -> None:
    assert listed(node) == {"busy": "Ongoing", "idle": "Empty"}
    assert listed(node, ListTransactionsRequest(state_filters=["Ongoing"])) == {"busy": "Ongoing"}
    assert listed(node, ListTransactionsRequest(transactional_id_pattern="i.*")) == {"idle": "Empty"}


def test_states_that_do_not_exist_are_named(node: SimulatedNode) -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"])
    answer = node.call(request, 2, ListTransactionsResponse)
    assert (answer.error_code, answer.unknown_state_filters) == (ErrorCode.NONE, ["Nonsense"])


def test_a_pattern_that_is_not_a_regular_expression_is_refused(node: SimulatedNode) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    answer = node.call(request, 2, ListTransactionsResponse)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


def test_ids_that_may_not_be_described_are_left_out(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, "busy"))
    assert listed(node) == {"idle": "Empty"}


def test_a_list_that_would_not_be_complete_is_an_error(node: SimulatedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not now")

    monkeypatch.setattr(Shard, "run", refuse)
    answer = node.call(ListTransactionsRequest(), 2, ListTransactionsResponse)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
