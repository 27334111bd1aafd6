import pytest

from quire.client.admin.hanging_transactions import find_hanging, find_owners, open_transactions
from quire.client.admin.partition_producers import abort_transaction, describe_producers
from quire.client.admin.transactions import describe_transactions
from quire.client.errors import DisconnectedError, UnreachableError
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_producers import ProducerState
from quire.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.client.model_coordinators import CoordinatedCluster, ModelTransaction

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def producer(producer_id: int, start_offset: int, *, written_ms: int = 0) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=4,
        last_timestamp=written_ms,
        coordinator_epoch=-1,
        current_txn_start_offset=start_offset,
    )


def with_open_transactions() -> CoordinatedCluster:
    """Four producers: one transaction under way, one ended but not in every partition, one unknown, one ended."""
    model = CoordinatedCluster(nodes=2)
    model.create("t", 2)
    model.producers[FIRST] = [producer(20, 7), producer(10, 5), producer(40, -1)]
    model.producers[SECOND] = [producer(20, 9), producer(30, 3)]
    model.transactions["under way"] = ModelTransaction(1, 10, [FIRST])
    model.transactions["in part"] = ModelTransaction(2, 20, [SECOND])
    return model


def test_open_transactions_are_found_at_every_leader_in_the_order_of_their_offsets() -> None:
    model = with_open_transactions()
    opened, failures = model.run(open_transactions(model.client(), [SECOND, FIRST]))
    assert failures == {}
    assert [(found.topic_partition, found.producer.producer_id, found.start_offset) for found in opened] == [
        (FIRST, 10, 5),
        (FIRST, 20, 7),
        (SECOND, 30, 3),
        (SECOND, 20, 9),
    ]


def test_a_transaction_that_no_coordinator_knows_hangs() -> None:
    model = with_open_transactions()
    model.clock.run_for(10_000)
    found, _ = model.run(find_hanging(model.client(), [FIRST, SECOND], older_than_ms=1000))
    assert [(opened.topic_partition, opened.producer.producer_id) for opened in found] == [(FIRST, 20), (SECOND, 30)]


def test_a_transaction_with_recent_writes_is_not_called_hanging() -> None:
    model = with_open_transactions()
    model.clock.run_for(10_000)
    model.producers[SECOND] = [producer(30, 3, written_ms=model.clock.now_ms())]
    found, _ = model.run(find_hanging(model.client(), [SECOND], older_than_ms=1000))
    assert found == []


def test_a_transaction_is_not_called_hanging_while_a_coordinator_is_unreachable() -> None:
    model = with_open_transactions()
    cluster = model.client(request_timeout_ms=3000)
    opened, _ = model.run(open_transactions(cluster, [SECOND]))
    model.network.crash("node-1")
    with pytest.raises(UnreachableError):
        model.run(find_owners(cluster, opened))


def test_an_abort_ends_it_in_that_partition_at_the_leader_of_now() -> None:
    model = with_open_transactions()
    cluster = model.client()
    opened, _ = model.run(open_transactions(cluster, [FIRST]))
    model.move("t", 0, leader=2)
    model.run(abort_transaction(cluster, FIRST, opened[1].producer))
    assert model.asked(WriteTxnMarkersRequest) == [1, 2]
    left, _ = model.run(open_transactions(cluster, [FIRST, SECOND]))
    assert [(found.topic_partition, found.producer.producer_id) for found in left] == [
        (FIRST, 10),
        (SECOND, 30),
        (SECOND, 20),
    ]
    *_, written = (request for _, request in model.requests if isinstance(request, WriteTxnMarkersRequest))
    (marker,) = written.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (20, 4, 0)
    assert marker.transaction_result is False


def test_an_abort_is_not_repeated_when_its_outcome_is_unknown() -> None:
    model = with_open_transactions()
    cluster = model.client()
    opened, _ = model.run(open_transactions(cluster, [FIRST]))
    model.carry_out_and_drop("WriteTxnMarkers")
    with pytest.raises(DisconnectedError):
        model.run(abort_transaction(cluster, FIRST, opened[0].producer))
    assert model.asked(WriteTxnMarkersRequest) == [1]


def test_producers_of_a_partition_whose_leader_moves_are_asked_for_again() -> None:
    model = with_open_transactions()
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    model.move("t", 1, leader=1)
    found = model.run(describe_producers(cluster, [SECOND]))[SECOND]
    assert not isinstance(found, ApiError)
    assert [each.producer_id for each in found] == [20, 30]


def test_transactions_are_described_by_their_coordinators() -> None:
    model = with_open_transactions()
    found = model.run(describe_transactions(model.client(), ["in part", "nobody", "under way"]))
    in_part, nobody, under_way = found.values()
    assert not isinstance(in_part, ApiError) and not isinstance(under_way, ApiError)
    assert (in_part.coordinator, in_part.partitions, in_part.under_way) == (2, [SECOND], True)
    assert under_way.coordinator == 1
    assert isinstance(nobody, ApiError) and nobody.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
