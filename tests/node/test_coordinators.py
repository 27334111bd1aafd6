"""The coordinators of a node: the internal topics that hold their state."""

from collections.abc import Callable

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.node.conftest import SimulatedNode

TRANSACTION = 1


def test_an_internal_topic_that_cannot_be_created_is_reported_with_the_reason(
    make_node: Callable[..., SimulatedNode], caplog: pytest.LogCaptureFixture
) -> None:
    node = make_node(settings={"transaction.state.log.segment.bytes": "20000"}).start()
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["billing"])
    found = node.call(request, 4, FindCoordinatorResponse).coordinators[0]
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (reported,) = [record.getMessage() for record in caplog.records if record.name == "quire.coordinators"]
    assert reported.startswith("the internal topic __transaction_state cannot be created: ")
    assert "segment.bytes" in reported and reported.endswith("(INVALID_CONFIG)")
