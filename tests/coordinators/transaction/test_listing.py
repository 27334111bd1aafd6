"""DescribeTransactions and ListTransactions."""

from typing import Any

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer


def cluster_with_transactions() -> SimCluster:
    """`done` has committed, `open` has been open for 30 seconds, `new` has not begun a transaction."""
    cluster = SimCluster()
    done, opened, new = (SimProducer(cluster, name, name) for name in ("done", "open", "new"))
    done.init()
    done.produce(("t", 0))
    done.end(commit=True)
    opened.init()
    opened.produce(("t", 1))
    opened.produce(("u", 0))
    cluster.clock.run_for(30_000)
    new.init()
    return cluster


def listed(cluster: SimCluster, **filters: Any) -> ListTransactionsResponse:
    request = ListTransactionsRequest(**filters)
    response = cluster.run(lambda machine, now_ms: machine.list_transactions(request, now_ms)).value
    assert not isinstance(response, ApiError)
    return response


def names(response: ListTransactionsResponse) -> list[str]:
    return [each.transactional_id for each in response.transaction_states]


def test_everything_is_listed_when_nothing_is_filtered() -> None:
    response = listed(cluster_with_transactions())
    assert [
        (each.transactional_id, each.producer_id, each.transaction_state) for each in response.transaction_states
    ] == [
        ("done", 1000, "CompleteCommit"),
        ("open", 1001, "Ongoing"),
        ("new", 1002, "Empty"),
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"state_filters": ["Ongoing"]}, ["open"]),
        ({"state_filters": ["Ongoing", "Empty"]}, ["open", "new"]),
        ({"producer_id_filters": [1000, 1002]}, ["done", "new"]),
        ({"producer_id_filters": [5]}, []),
        ({"state_filters": ["Empty"], "producer_id_filters": [1000]}, []),
        ({"state_filters": ["Ongoing"], "duration_filter": 29_999}, ["open"]),
        ({"state_filters": ["Ongoing"], "duration_filter": 30_000}, []),
        ({"duration_filter": -1}, ["done", "open", "new"]),
    ],
)
def test_filters(filters: dict[str, Any], expected: list[str]) -> None:
    assert names(listed(cluster_with_transactions(), **filters)) == expected


def test_states_that_do_not_exist_are_named_and_match_nothing() -> None:
    response = listed(cluster_with_transactions(), state_filters=["Sleeping"])
    assert response.unknown_state_filters == ["Sleeping"]
    assert names(response) == []


def test_a_transaction_is_described_with_its_partitions() -> None:
    cluster = cluster_with_transactions()
    described = cluster.run(lambda machine, now_ms: machine.describe("open")).value
    assert not isinstance(described, ApiError)
    assert (described.error_code, described.transaction_state) == (0, "Ongoing")
    assert (described.producer_id, described.producer_epoch, described.transaction_timeout_ms) == (1001, 0, 60_000)
    assert described.transaction_start_time_ms == cluster.clock.now_ms() - 30_000
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("t", [1]), ("u", [0])]


@pytest.mark.parametrize(
    ("transactional_id", "code"), [("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST)]
)
def test_a_missing_transaction_cannot_be_described(transactional_id: str, code: ErrorCode) -> None:
    described = SimCluster().run(lambda machine, now_ms: machine.describe(transactional_id)).value
    assert not isinstance(described, ApiError)
    assert (described.transactional_id, described.error_code) == (transactional_id, code)
