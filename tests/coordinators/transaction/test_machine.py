"""TransactionMachine as a whole: many producers with one transactional id, and the state that it keeps."""

from quire.coordinators.runtime.record import Origin, tombstone
from quire.coordinators.transaction.transactions import Markers
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.transaction_records import TransactionLogKey
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer

T0, T1 = ("t", 0), ("t", 1)


def test_of_ten_producers_with_one_id_the_last_works_and_the_others_are_fenced() -> None:
    cluster = SimCluster()
    producers = [SimProducer(cluster, f"P{number}", "orders") for number in range(10)]
    for producer in producers:
        while producer.init().value[0] is ErrorCode.CONCURRENT_TRANSACTIONS:
            pass
        assert producer.produce(T0).value is ErrorCode.NONE
    *others, last = producers
    for producer in others:
        assert producer.produce(T1).value is ErrorCode.PRODUCER_FENCED
        assert producer.end(commit=True).value[0] is ErrorCode.PRODUCER_FENCED
        assert producer.init(goes_on=True).value[0] is ErrorCode.PRODUCER_FENCED
    assert last.end(commit=True).value[0] is ErrorCode.NONE
    log = cluster.partitions[T0]
    verdicts = [log.verdict(entry, index) for index, entry in enumerate(log.entries) if not entry.is_marker]
    assert verdicts == ["ABORT"] * 9 + ["COMMIT"]
    assert not cluster.partitions[T1].entries


def test_a_producer_does_not_affect_those_with_other_ids() -> None:
    cluster = SimCluster()
    slow, quick = SimProducer(cluster, "SLOW", "slow"), SimProducer(cluster, "QUICK", "quick")
    slow.init()
    slow.produce(T1)
    cluster.channel.down.add(2)
    slow.end(commit=True)
    quick.init()
    for _ in range(5):
        assert quick.produce(T0).value is ErrorCode.NONE
        assert quick.end(commit=True).value[0] is ErrorCode.NONE
    assert slow.produce(T0).value is ErrorCode.CONCURRENT_TRANSACTIONS


def test_it_keeps_one_transaction_for_each_id_however_many_there_were() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    for _ in range(100):
        producer.produce(T0)
        producer.end(commit=True)
    machine = cluster.shard.machine
    assert len(machine._transactions) == 1
    assert not machine._transactions.ongoing
    assert isinstance(machine._marker_writer._pending, dict) and not machine._marker_writer._pending  # type: ignore[attr-defined]


def test_a_tombstone_of_an_unknown_key_is_accepted() -> None:
    cluster = SimCluster()
    cluster.shard.machine.replay(tombstone(TransactionLogKey(transactional_id="orders")), Origin(0))
    assert len(cluster.shard.machine._transactions) == 0


def test_only_the_markers_of_the_current_decision_complete_it() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    producer.produce(T0)
    producer.end(commit=True)
    producer.produce(T0)
    cluster.channel.holding = True
    producer.end(commit=True)

    def written(transactional_id: str, epoch: int) -> int:
        markers = Markers(transactional_id, 1000, epoch, True, 2, {})
        return len(cluster.shard.machine.markers_written(markers, 0).records)

    assert [written("orders", epoch) for epoch in (1, 2, 3)] == [0, 1, 0]
    assert written("payments", 2) == 0


def test_many_ends_that_are_committed_in_one_append_get_their_markers_together() -> None:
    cluster = SimCluster()
    producers = [SimProducer(cluster, f"P{number}", f"id{number}") for number in range(200)]
    for producer in producers:
        producer.init()
        producer.produce(T0)
    cluster.shard.holding = True
    answers = [producer.end(commit=True) for producer in producers]
    cluster.story.clear()
    cluster.shard.holding = False
    cluster.shard.commit()
    assert all(answer.value[0] is ErrorCode.NONE for answer in answers)
    assert sum(line.startswith("t-0: COMMIT") for line in cluster.story) == 200
    assert sum("CompleteCommit" in line for line in cluster.story) == 200


def test_a_machine_that_is_unloaded_sends_nothing_more() -> None:
    cluster = SimCluster()
    producer = SimProducer(cluster, "P", "orders")
    producer.init()
    producer.produce(T0)
    cluster.channel.down.add(1)
    producer.end(commit=True)
    before = len(cluster.story)
    cluster.shard.machine.unloaded(ErrorCode.NOT_COORDINATOR)
    cluster.clock.run_for(60_000)
    assert len(cluster.story) == before
