"""What a read_committed fetch gets from a log with transactions in it."""

import itertools

import pytest

from quire.pending import Pending
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.records.batch import walk_batches
from quire.replication.members import Members
from quire.storage.segment import lookup
from tests.node.conftest import SimulatedNode
from tests.storage.batches import append, batch, marker

READ_COMMITTED = 1


def node_with(*batches: bytearray) -> SimulatedNode:
    node = SimulatedNode().start()
    node.create_topic("t")
    leader = node.node.partitions.leader("t", None, 0)
    for data in batches:
        append(leader.log, data)
    leader.partition.become_leader(leader.leader_epoch, Members((1,), (1,)))
    return node


def transactional(producer_id: int, sequence: int) -> bytearray:
    return batch(producer_id=producer_id, producer_epoch=0, sequence=sequence, transactional=True)


def fetch(node: SimulatedNode, isolation_level: int, offset: int = 0) -> PartitionData:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    request = FetchRequest(max_wait_ms=0, isolation_level=isolation_level, topics=topics)
    return node.call(request, 12, FetchResponse).responses[0].partitions[0]


def offsets(data: PartitionData) -> list[int]:
    assert isinstance(data.records, memoryview)
    return [header.base_offset for header in walk_batches(data.records)]


def test_readers_of_committed_records_get_the_aborted_transactions_and_nothing_of_open_ones() -> None:
    node = node_with(
        transactional(1, 0),
        transactional(2, 0),
        marker(1, aborts=True),
        marker(2, aborts=False),
        transactional(3, 0),
        batch(),
    )
    data = fetch(node, READ_COMMITTED)
    assert (data.high_watermark, data.last_stable_offset) == (6, 4)
    assert offsets(data) == [0, 1, 2, 3]
    assert [(aborted.producer_id, aborted.first_offset) for aborted in data.aborted_transactions or []] == [(1, 0)]
    assert fetch(node, READ_COMMITTED, offset=3).aborted_transactions == []


def test_other_readers_see_everything_and_get_no_list_of_aborted_transactions() -> None:
    data = fetch(node_with(transactional(1, 0), marker(1, aborts=True), transactional(2, 0)), 0)
    assert offsets(data) == [0, 1, 2]
    assert data.aborted_transactions is None


def waiting_fetch(node: SimulatedNode, min_bytes: int) -> Pending[bytes | None]:
    wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    return node.send(
        FetchRequest(max_wait_ms=5000, min_bytes=min_bytes, isolation_level=READ_COMMITTED, topics=topics), 12
    )


def test_a_fetch_that_waits_for_committed_records_ignores_open_ones_and_is_woken_at_their_end() -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    leader = node.node.partitions.leader("t", None, 0)
    now_ms = node.clock.now_ms()
    waiting = waiting_fetch(node, min_bytes=100)
    for sequence in range(3):
        leader.append_own(transactional(1, sequence), now_ms)
    node.clock.run_for(100)
    assert not waiting.done
    leader.end_transaction(1, 0, committed=True, coordinator_epoch=0, bumps_epoch=False, now_ms=now_ms)
    node.clock.run_for(10)
    assert waiting.done
    assert len(waiting.value or b"") > 300, "all of it is there"


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_disk_that_fails_at_any_read_of_a_fetch_that_waits_is_not_unforeseen(
    failing: int, caplog: pytest.LogCaptureFixture
) -> None:
    node = node_with(batch(), transactional(1, 0), batch())
    leader = node.node.partitions.leader("t", None, 0)
    leader.log.roll(node.clock.now_ms())
    reads = itertools.count(1)
    node.disk.fail_when(
        lambda call: (
            call.kind == "read" and call.path.endswith("/t-0/00000000000000000000.log") and next(reads) == failing
        )
    )
    waiting = waiting_fetch(node, min_bytes=10_000)
    leader.append_own(batch(), node.clock.now_ms())
    node.clock.run_for(10)
    assert next(reads) > failing, "it has failed"
    assert waiting.done, "the client gets its response at once"
    assert "unexpectedly" not in caplog.text
    assert "waking the fetches" not in caplog.text


def test_a_disk_that_fails_when_waiting_fetches_are_answered_at_a_stop_does_not_keep_the_node_from_stopping() -> None:
    node = node_with(batch(), transactional(1, 0), batch())
    node.node.partitions.leader("t", None, 0).log.roll(node.clock.now_ms())
    waiting = waiting_fetch(node, min_bytes=10_000)
    assert not waiting.done
    node.disk.fail_when(lambda call: call.kind == "read" and call.path.endswith(".log"))
    stopped = node.node.stop()
    node.clock.run_for(1000)
    assert waiting.done
    assert stopped.done


def test_a_wrong_transaction_index_is_rebuilt_in_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 0)
    node = node_with(transactional(1, 0), marker(1, aborts=True))
    log = node.node.partitions.leader("t", None, 0).log
    log.roll(node.clock.now_ms())
    index = log.segments[0].transaction_index
    node.disk.open(index.path).truncate(5)
    index.unload()
    wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, isolation_level=READ_COMMITTED, topics=[FetchTopic(topic="t", partitions=[wanted])]
    )
    answer = node.send(request, 12)
    assert not answer.done, "the loop runs meanwhile"
    node.clock.run_until(lambda: answer.done)
    data = fetch(node, READ_COMMITTED)
    assert offsets(data) == [0, 1]
    assert [(aborted.producer_id, aborted.first_offset) for aborted in data.aborted_transactions or []] == [(1, 0)]
