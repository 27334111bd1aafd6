"""InitProducerId: what is refused and what is accepted."""

import pytest

from quire.coordinators.runtime.machine import Caller
from quire.coordinators.transaction.producer_epochs import NeedsProducerId
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer

CALLER = Caller("a client", "here", 6)


def refusal(cluster: SimCluster, **fields: object) -> ErrorCode:
    request = InitProducerIdRequest(**{"transactional_id": "orders", "transaction_timeout_ms": 60_000, **fields})  # type: ignore[arg-type]
    answer = cluster.run(lambda machine, now_ms: machine.init_producer_id(request, CALLER, now_ms, 5)).value
    assert isinstance(answer, ApiError)
    return answer.code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"producer_id": 4}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 4}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_requests_get_kafkas_error(fields: dict[str, object], code: ErrorCode) -> None:
    cluster = SimCluster()
    assert refusal(cluster, **fields) is code
    assert not cluster.shard.log


def test_a_new_transactional_id_needs_a_producer_id_and_says_so() -> None:
    cluster = SimCluster()
    request = InitProducerIdRequest(transactional_id="orders", transaction_timeout_ms=60_000)
    answer = cluster.run(lambda machine, now_ms: machine.init_producer_id(request, CALLER, now_ms)).value
    assert isinstance(answer, NeedsProducerId) and answer.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not cluster.shard.log


def test_a_producer_id_that_is_not_needed_is_not_used() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    request = InitProducerIdRequest(transactional_id="orders", transaction_timeout_ms=60_000)
    response = cluster.run(lambda machine, now_ms: machine.init_producer_id(request, CALLER, now_ms, 5)).value
    assert not isinstance(response, ApiError)
    assert (response.producer_id, response.producer_epoch) == (producer.producer_id, 1)


def test_the_timeout_is_that_of_the_last_producer() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init(timeout_ms=60_000)
    producer.init(timeout_ms=5_000)
    producer.produce(("t", 0))
    cluster.clock.run_for(12_000)
    assert "t-0: ABORT 1000:2" in cluster.story


def test_a_repeated_request_to_resume_gives_the_same_epoch_twice() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    cluster.shard.holding = True
    first = producer.init(goes_on=True)
    second = producer.init(goes_on=True)
    cluster.shard.commit()
    assert first.value == second.value == (ErrorCode.NONE, 1000, 1)


def test_a_late_request_to_resume_does_not_end_the_transaction_that_followed() -> None:
    cluster = SimCluster()
    producer, late = SimProducer(cluster, "P", "orders"), SimProducer(cluster, "LATE", "orders")
    producer.init()
    late.producer_id, late.epoch = producer.producer_id, producer.epoch
    producer.init(goes_on=True)
    producer.produce(("t", 0))
    assert late.init(goes_on=True).value[0] is ErrorCode.PRODUCER_FENCED
    assert producer.end(commit=True).value[0] is ErrorCode.NONE


def test_a_producer_that_resumes_a_forgotten_id_begins_again() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.producer_id, producer.epoch = 77, 5
    assert producer.init(goes_on=True).value == (ErrorCode.NONE, 1000, 0)


def test_the_highest_epoch_is_given_to_no_producer() -> None:
    cluster = SimCluster(0)
    cluster.given("orders", 7, 32765)
    producer = SimProducer(cluster, "P", "orders", 1)
    producer.init()
    producer.add(("t", 0))
    cluster.clock.run_for(80_000)
    assert "log: orders is CompleteAbort 7:32767" in cluster.story
    assert producer.init(goes_on=True).value[0] is ErrorCode.PRODUCER_FENCED
    assert producer.init().value == (ErrorCode.NONE, 1000, 0)


def test_a_record_that_the_log_refuses_leaves_no_trace() -> None:
    """The log refuses the record, for example because it is too large: it is not replayed, and the machine keeps
    working."""
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    request = InitProducerIdRequest(
        transactional_id="orders", transaction_timeout_ms=60_000, producer_id=1000, producer_epoch=0
    )
    cluster.shard.machine.init_producer_id(request, CALLER, cluster.clock.now_ms())
    SimProducer(cluster, "OTHER", "orders").init()
    assert producer.init(goes_on=True).value[0] is ErrorCode.PRODUCER_FENCED
