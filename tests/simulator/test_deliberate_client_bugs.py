"""Bugs put into Quire's own client on purpose: the simulator must find each of them within a few seeds."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from quire.client.batch import Batch, Identity
from quire.client.fetched import Fetched
from quire.client.fetcher import Position
from quire.client.partition_queue import PartitionQueue
from quire.client.producer import Producer
from quire.pending import Pending, completed
from quire.protocol.records import BatchHeader, walk_batches
from simulator.plan import Plan, TransactionalPlan, plan_of
from simulator.world import World

MOST_SEEDS = 25
ONCE = "an idempotent producer's record is in the log once"
IN_ORDER = "an idempotent producer's records are in send order, without a gap"
ATOMIC = "a transaction is committed as a whole or not at all"


def own_clients_alone(seed: int, **faults: int) -> Plan:
    return replace(
        plan_of(seed, scale=0.5),
        faults={name.replace("_", " "): weight for name, weight in faults.items()},
        fault_pause_ms=100.0,
        plain_acks=[],
        idempotent_producers=0,
        consumers=0,
        session_consumers=0,
        committed_consumers=0,
        transactional=[],
        groups=[],
        vandal=False,
        own_producers=2,
        own_transactional=[TransactionalPlan((1,), False), TransactionalPlan((2,), False)],
        own_consumers=2,
    )


def broken_promise(**faults: int) -> str:
    for seed in range(MOST_SEEDS):
        outcome = World(seed, own_clients_alone(seed, **faults)).run()
        if outcome.violation is not None:
            return outcome.violation.partition(":")[0]
    return "none"


@pytest.mark.parametrize("seed", range(6))
def test_without_a_bug_every_promise_holds(seed: int) -> None:
    outcome = World(seed, own_clients_alone(seed, broken_connections=2, kill=1, bad_network=1)).run()
    assert outcome.violation is None
    assert outcome.counts.records_acknowledged > 0
    assert outcome.counts.transactions_committed > 0


def test_batches_without_sequence_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = PartitionQueue.take

    def careless(self: PartitionQueue, leader: int, identity: Identity | None) -> Batch:
        return take(self, leader, None)

    monkeypatch.setattr(PartitionQueue, "take", careless)
    assert broken_promise(broken_connections=1) in (ONCE, IN_ORDER, "errors have a cause")


def test_a_retry_under_a_new_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    retry = PartitionQueue.retry

    def renumbering(self: PartitionQueue, batch: Batch, *, uncertain: bool) -> bool:
        batch.unstamp()
        return retry(self, batch, uncertain=uncertain)

    monkeypatch.setattr(PartitionQueue, "retry", renumbering)
    assert broken_promise(broken_connections=1) in (ONCE, IN_ORDER, "errors have a cause")


def test_a_commit_that_does_not_wait_for_its_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = Producer.flush

    def hasty(self: Producer) -> Pending[None]:
        flush(self)
        return completed(None)

    monkeypatch.setattr(Producer, "flush", hasty)
    # Or a record fails after the end of its transaction, for which the client has an assertion.
    assert broken_promise() in (ATOMIC, "errors have a cause", "no callback raises")


def test_aborted_records_that_are_shown_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfiltered(self: Fetched) -> Iterator[BatchHeader]:
        return (batch for batch in walk_batches(self.batches) if not batch.is_control)

    monkeypatch.setattr(Fetched, "visible_batches", unfiltered)
    assert broken_promise() == "a consumer returns what is visible"


def test_a_consumer_that_skips_what_it_has_read_ahead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Position) -> Fetched:
        piece = self.pieces.pop()
        self.buffered_bytes -= len(piece.batches)
        return piece

    monkeypatch.setattr(Position, "take", forgetful)
    assert broken_promise() == "a consumer continues at its position"
