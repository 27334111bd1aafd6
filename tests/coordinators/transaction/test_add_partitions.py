"""AddPartitionsToTxn and AddOffsetsToTxn: which producers may add what."""

import pytest

from quire.coordinators.runtime.machine import Caller
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS
from quire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer
from tests.coordinators.transaction.sim_partitions import Name

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


def initialized(transaction_version: int = 2) -> tuple[SimCluster, SimProducer]:
    cluster = SimCluster(transaction_version)
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    cluster.story.clear()
    return cluster, producer


def ask(
    cluster: SimCluster, *topics: tuple[str, list[int]], verify_only: bool = False, epoch: int = 0, api_version: int = 5
) -> list[tuple[str, int, ErrorCode]]:
    """Like a request of a broker."""
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="orders",
        producer_id=1000,
        producer_epoch=epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics],
    )
    caller = Caller("a broker", "there", api_version)
    result = cluster.run(lambda machine, now_ms: machine.add_partitions_of(transaction, caller, now_ms)).value
    assert not isinstance(result, ApiError) and result.transactional_id == "orders"
    return [
        (topic.name, partition.partition_index, ErrorCode(partition.partition_error_code))
        for topic in result.topic_results
        for partition in topic.results_by_partition
    ]


def test_a_broker_adds_partitions_of_several_topics_at_once() -> None:
    cluster, _ = initialized()
    assert ask(cluster, ("t", [0, 1]), ("u", [0])) == [
        ("t", 0, ErrorCode.NONE),
        ("t", 1, ErrorCode.NONE),
        ("u", 0, ErrorCode.NONE),
    ]
    assert cluster.story == ["log: orders is Ongoing 1000:0 t-0 t-1 u-0"]


def test_partitions_already_added_are_not_written_again() -> None:
    cluster, _ = initialized()
    ask(cluster, ("t", [0, 1]))
    assert ask(cluster, ("t", [1])) == [("t", 1, ErrorCode.NONE)]
    assert len(cluster.story) == 1


def test_a_topic_and_a_partition_that_are_named_twice_are_added_once() -> None:
    cluster, _ = initialized()
    ask(cluster, ("t", [0, 0]), ("u", [1]), ("t", [1, 0]))
    assert cluster.story == ["log: orders is Ongoing 1000:0 t-0 t-1 u-1"]


def test_nothing_to_add_begins_no_transaction() -> None:
    cluster, producer = initialized()
    assert ask(cluster) == ask(cluster, ("t", [])) == []
    producer.add()
    assert not cluster.story


def test_one_unknown_partition_keeps_the_others_from_being_added() -> None:
    cluster, _ = initialized()
    assert ask(cluster, ("t", [0, 7]), ("nowhere", [0]), ("u", [-1])) == [
        ("t", 0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert not cluster.story


def test_a_broker_that_verifies_learns_which_partitions_were_added_and_adds_none() -> None:
    cluster, _ = initialized()
    ask(cluster, ("t", [0]))
    assert ask(cluster, ("t", [0, 1]), verify_only=True) == [
        ("t", 0, ErrorCode.NONE),
        ("t", 1, ErrorCode.TRANSACTION_ABORTABLE),
    ]
    assert len(cluster.story) == 1


def test_verifying_while_the_transaction_is_being_ended() -> None:
    cluster = SimCluster(0)
    producer = SimProducer(cluster, "P", "orders", 1)
    producer.init()
    producer.add(T0)
    cluster.channel.holding = True
    producer.end(commit=True)
    assert ask(cluster, ("t", [0]), verify_only=True) == [("t", 0, ErrorCode.CONCURRENT_TRANSACTIONS)]
    assert ask(cluster, ("t", [0]), verify_only=True, epoch=5) == [("t", 0, ErrorCode.PRODUCER_FENCED)]


@pytest.mark.parametrize(
    ("api_version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_a_fenced_producer_gets_the_error_of_its_version(api_version: int, code: ErrorCode) -> None:
    _, producer = initialized()
    producer.epoch = 3
    assert producer.add(T0, api_version=api_version).value is code
    assert producer.add_offsets(api_version=api_version).value is code


@pytest.mark.parametrize("name", [T0, (GROUP_OFFSETS, 0)])
def test_a_request_without_a_transactional_id_is_invalid(name: Name) -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "")
    assert producer.add(name).value is ErrorCode.INVALID_REQUEST
    assert producer.add_offsets().value is ErrorCode.INVALID_REQUEST


def test_the_reserved_highest_epoch_begins_no_transaction() -> None:
    cluster = SimCluster()
    cluster.given("orders", 1000, 32767)
    assert ask(cluster, ("t", [0]), epoch=32767) == [("t", 0, ErrorCode.PRODUCER_FENCED)]


def test_offsets_wait_until_there_is_a_topic_for_them() -> None:
    cluster, producer = initialized()
    cluster.delete_topic(GROUP_OFFSETS)
    assert producer.add_offsets().value is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("transaction_version", "api_version", "recorded"), [(2, 5, 2), (2, 4, 2), (2, 3, 0), (1, 5, 0), (0, 5, 0)]
)
def test_the_protocol_that_was_spoken_is_written_down(
    transaction_version: int, api_version: int, recorded: int
) -> None:
    cluster, _ = initialized(transaction_version)
    ask(cluster, ("t", [0]), api_version=api_version)
    (transaction,) = cluster.shard.machine._transactions
    assert transaction.client_version == recorded


def test_many_partitions_one_by_one() -> None:
    cluster, _ = initialized()
    topic = cluster.image.topics_by_name["t"]
    for index in range(2, 300):
        topic.partitions[index] = topic.partitions[0]
        ask(cluster, ("t", [index]))
    assert ask(cluster, ("t", list(range(2, 300))), verify_only=True) == [
        ("t", index, ErrorCode.NONE) for index in range(2, 300)
    ]


def test_partitions_that_are_added_while_the_log_is_slow_are_all_added() -> None:
    cluster, producer = initialized()
    cluster.shard.holding = True
    answers = [producer.produce(name) for name in (T0, T1, U0)]
    assert not any(answer.done for answer in answers)
    cluster.shard.commit()
    assert [answer.value for answer in answers] == [ErrorCode.NONE] * 3
    assert cluster.story[-1] == "log: orders is Ongoing 1000:0 t-0 t-1 u-0"
