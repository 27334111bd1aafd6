"""Transactions as coordinators report them; test_hanging_transactions has what partitions report."""

import pytest

from quire.client.admin.transactions import describe_transactions, list_transactions, terminate_transaction
from quire.client.errors import ClientError, UnreachableError
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from quire.protocol.messages.list_transactions import ListTransactionsRequest
from tests.client.model_coordinators import CoordinatedCluster, ModelTransaction

TOPIC_PARTITION = TopicPartition("t", 0)


def with_transactions() -> CoordinatedCluster:
    model = CoordinatedCluster(nodes=2)
    model.transactions["b"] = ModelTransaction(1, 10, [TOPIC_PARTITION])
    model.transactions["a"] = ModelTransaction(2, 20, state="CompleteCommit")
    return model


def test_those_of_all_coordinators_are_listed_by_name() -> None:
    model = with_transactions()
    model.loading(1, times=2)
    found, failure = model.run(list_transactions(model.client()))
    assert failure is None
    assert [(each.transactional_id, each.producer_id, each.state, each.coordinator) for each in found] == [
        ("a", 20, "CompleteCommit", 2),
        ("b", 10, "Ongoing", 1),
    ]


def test_an_incomplete_list_says_why() -> None:
    model = with_transactions()
    model.network.crash("node-1")
    found, failure = model.run(list_transactions(model.client()))
    assert [each.transactional_id for each in found] == ["a"]
    assert isinstance(failure, UnreachableError)


def test_a_state_that_brokers_do_not_know_is_named() -> None:
    model = with_transactions()
    with pytest.raises(ClientError, match="Asleep"):
        model.run(list_transactions(model.client(), states=["Asleep"]))


def test_only_a_filter_that_needs_it_asks_for_a_newer_broker() -> None:
    model = with_transactions()
    model.versions[ListTransactionsRequest.API_KEY] = (0, 0)
    found, failure = model.run(list_transactions(model.client(), producer_ids=[20]))
    assert failure is None and [each.transactional_id for each in found] == ["a"]
    _, failure = model.run(list_transactions(model.client(), longer_than_ms=1000))
    assert isinstance(failure, ClientError)


def test_completed_transactions_are_not_in_progress() -> None:
    model = with_transactions()
    rests, goes_on = model.run(describe_transactions(model.client(), ["a", "b"])).values()
    assert not isinstance(rests, ApiError) and not isinstance(goes_on, ApiError)
    assert (rests.under_way, goes_on.under_way) == (False, True)
    assert goes_on.partitions == [TOPIC_PARTITION]


def test_terminating_waits_until_the_old_transaction_is_aborted() -> None:
    model = with_transactions()
    model.refuse("InitProducerId", ErrorCode.CONCURRENT_TRANSACTIONS, count=3)
    model.run(terminate_transaction(model.client(), "a"))
    assert model.asked(InitProducerIdRequest) == [2, 2, 2, 2]


def test_terminating_gives_up_with_the_request_timeout_or_when_it_is_refused() -> None:
    model = with_transactions()
    model.refuse("InitProducerId", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        model.run(terminate_transaction(model.client(), "b"))
    model.refuse("InitProducerId", ErrorCode.CONCURRENT_TRANSACTIONS, count=1000)
    with pytest.raises(ApiError, match="CONCURRENT_TRANSACTIONS"):
        model.run(terminate_transaction(model.client(request_timeout_ms=3000), "b"))
    assert model.clock.monotonic_ms() < 10_000
