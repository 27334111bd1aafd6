from quire.client.batch import Batch, Identity
from quire.client.offsets import TopicPartition
from quire.client.partition_queue import PartitionQueue
from quire.protocol.records import Record

TOPIC_PARTITION = TopicPartition("t", 0)
FIRST, SECOND = Identity(7, 0), Identity(7, 1)


def queue_of(*counts: int) -> tuple[PartitionQueue, list[Batch]]:
    queue = PartitionQueue(TOPIC_PARTITION)
    batches = []
    for order, count in enumerate(counts):
        batch = Batch(TOPIC_PARTITION, order, deadline_ms=1000)
        batch.extend([Record(value=b"v") for _ in range(count)], count)
        queue.open = batch
        queue.close_open()
        batches.append(batch)
    return queue, batches


def take_all(queue: PartitionQueue, identity: Identity | None = FIRST) -> list[Batch]:
    taken = []
    while queue.sendable(1, identity, 0):
        taken.append(queue.take(1, identity))
    return taken


def introduced(*counts: int) -> tuple[PartitionQueue, list[Batch]]:
    """A queue whose producer id the broker knows; its next sequence number is 1."""
    queue, batches = queue_of(1, *counts)
    queue.delivered(queue.take(1, FIRST))
    return queue, batches[1:]


def test_batches_are_numbered_by_their_records_in_order() -> None:
    queue, batches = introduced(3, 2, 1)
    assert take_all(queue) == batches
    assert [batch.sequence for batch in batches] == [1, 4, 6]


def test_the_first_batch_of_an_identity_travels_alone_until_it_is_delivered() -> None:
    queue, (a, b, c) = queue_of(1, 1, 1)
    assert take_all(queue) == [a]
    assert queue.retry(a, uncertain=True)
    assert take_all(queue) == [a]
    queue.delivered(a)
    assert take_all(queue) == [b, c]


def test_numbers_wrap_after_the_last_positive_int() -> None:
    queue, batches = introduced(1, 1)
    queue.take(1, FIRST)
    queue._next_sequence = (1 << 31) - 1
    queue.take(1, FIRST)
    assert batches[1].sequence == (1 << 31) - 1
    assert queue._next_sequence == 0


def test_a_refused_batch_is_resent_first_and_only_after_the_responses_to_the_others() -> None:
    queue, (a, b, c) = introduced(1, 1, 1)
    take_all(queue)
    assert queue.retry(a, uncertain=False)
    assert not queue.sendable(1, FIRST, 0)
    assert queue.retry(c, uncertain=False)
    assert not queue.sendable(1, FIRST, 0)
    assert queue.retry(b, uncertain=False)
    for batch in (a, b, c):
        assert take_all(queue) == [batch], "repeats go one by one"
        queue.delivered(batch)
    assert [batch.sequence for batch in (a, b, c)] == [1, 2, 3]


def test_new_batches_wait_until_the_repeats_are_through() -> None:
    queue, (a, b) = introduced(1, 1)
    queue.take(1, FIRST)
    queue.retry(a, uncertain=True)
    assert take_all(queue) == [a]
    queue.delivered(a)
    assert take_all(queue) == [b]


def test_a_new_leader_gets_nothing_while_the_old_one_owes_an_answer() -> None:
    queue, (a, b) = introduced(1, 1)
    queue.take(1, FIRST)
    assert not queue.sendable(2, FIRST, 0)
    queue.retry(a, uncertain=False)
    assert queue.sendable(2, FIRST, 0)
    assert queue.take(2, FIRST) is a
    queue.delivered(a)
    assert queue.take(2, FIRST) is b


def test_a_batch_after_a_delivered_one_keeps_its_number_through_retries() -> None:
    queue, (a, b) = introduced(2, 2)
    take_all(queue)
    queue.delivered(a)
    assert queue.retry(b, uncertain=True)
    assert take_all(queue) == [b]
    assert b.sequence == 3


def test_only_a_gap_in_front_of_the_oldest_batch_is_the_brokers_doing() -> None:
    queue, (a, b) = introduced(1, 1)
    take_all(queue)
    assert queue.is_oldest(a)
    assert not queue.is_oldest(b)
    queue.retry(a, uncertain=False)
    assert not queue.is_oldest(b)
    queue.retry(b, uncertain=False)
    assert take_all(queue) == [a]
    queue.delivered(a)
    assert take_all(queue) == [b]
    assert queue.is_oldest(b)


def test_a_rest_is_kept() -> None:
    queue, _ = queue_of(1)
    queue.backoff_until_ms = 500
    assert not queue.sendable(1, FIRST, 499)
    assert queue.sendable(1, FIRST, 500)


def test_after_a_gap_refused_batches_are_renumbered_under_the_next_epoch() -> None:
    queue, (a, b, c) = introduced(2, 2, 2)
    take_all(queue)
    queue.given_up(a)
    assert queue.counts(a)
    assert queue.start_over() == []
    assert queue.retry(b, uncertain=False)
    assert not queue.sendable(1, SECOND, 0), "the old epoch's last batch is still to be answered"
    assert queue.retry(c, uncertain=False)
    assert take_all(queue, SECOND) == [b]
    queue.delivered(b)
    assert take_all(queue, SECOND) == [c]
    assert [(batch.identity, batch.sequence) for batch in (b, c)] == [(SECOND, 0), (SECOND, 2)]


def test_after_a_gap_a_batch_of_unknown_fate_is_given_up_rather_than_sent_under_a_new_number() -> None:
    queue, (a, b, c) = introduced(1, 1, 1)
    take_all(queue)
    assert queue.retry(b, uncertain=True)
    queue.given_up(a)
    assert queue.start_over() == [b]
    assert not queue.retry(c, uncertain=True)
    assert not queue.counts(c), "the numbers after the gap were given up already"


def test_once_unknown_always_unknown() -> None:
    queue, (a,) = queue_of(1)
    take_all(queue)
    queue.retry(a, uncertain=True)
    take_all(queue)
    queue.retry(a, uncertain=False)
    assert queue.start_over() == [a]


def test_a_new_epoch_waits_until_nothing_of_the_old_one_is_in_flight() -> None:
    queue, (a, b) = introduced(1, 1)
    assert queue.take(1, FIRST) is a
    assert not queue.sendable(1, SECOND, 0)
    queue.delivered(a)
    assert queue.sendable(1, SECOND, 0)
    assert queue.take(1, SECOND) is b
    assert (b.identity, b.sequence) == (SECOND, 0)


def test_without_an_identity_nothing_is_numbered() -> None:
    queue, batches = queue_of(1, 1)
    assert take_all(queue, None) == batches
    assert {batch.sequence for batch in batches} == {-1}


def test_expired_batches_are_removed_and_the_rest_stays() -> None:
    queue, (a, b) = queue_of(1, 1)
    b.deadline_ms = 2000
    assert queue.expire(1000) == [a]
    assert take_all(queue) == [b]
