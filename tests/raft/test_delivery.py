"""Committed batches reach the listener in order, a limited amount in each turn of the event loop."""

from collections.abc import Iterator

from quire.raft.delivery import TURN_BYTES, Delivery
from quire.raft.errors import MetadataLogError
from quire.raft.log_store import CommittedBatch
from simulator.clock import SimClock


def batch(offset: int, size_bytes: int = TURN_BYTES // 2) -> CommittedBatch:
    return CommittedBatch(offset, offset, 1, 0, size_bytes, [])


class Store:
    """A log of one batch per offset."""

    def __init__(self) -> None:
        self.reads: list[tuple[int, int]] = []
        self.broken_at = -1

    def read(self, start: int, end: int) -> Iterator[CommittedBatch]:
        self.reads.append((start, end))
        for offset in range(start, end):
            if offset == self.broken_at:
                raise MetadataLogError("unreadable")
            yield batch(offset)


class Sim:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.store = Store()
        self.turns: list[list[int]] = []
        self.delivered = 0
        self.failures: list[Exception] = []
        self.delivery = Delivery(self.store, self.clock, self._deliver, self._delivered, self.failures.append)  # type: ignore[arg-type]

    def _deliver(self, batches: list[CommittedBatch]) -> None:
        self.turns.append([each.base_offset for each in batches])

    def _delivered(self) -> None:
        self.delivered += 1


def test_a_long_log_is_delivered_in_turns_and_read_once() -> None:
    sim = Sim()
    sim.delivery.committed(5)
    assert (sim.turns, sim.delivered) == ([[0, 1]], 0)
    sim.clock.run_for(0)
    assert (sim.turns, sim.delivered) == ([[0, 1], [2, 3], [4]], 1)
    assert sim.store.reads == [(0, 5)]


def test_records_committed_between_two_turns_follow_in_order() -> None:
    sim = Sim()
    sim.delivery.committed(3)
    sim.delivery.committed(4)
    sim.clock.run_for(0)
    assert sim.turns == [[0, 1], [2, 3]]


def test_records_that_this_node_wrote_are_not_read_again() -> None:
    sim = Sim()
    sim.delivery.wrote(batch(1, 10))
    sim.delivery.wrote(batch(2, 10))
    sim.delivery.committed(3)
    assert (sim.turns, sim.store.reads) == ([[0, 1, 2]], [(0, 1)])


def test_records_of_a_former_leader_are_read_from_the_log() -> None:
    sim = Sim()
    sim.delivery.wrote(batch(0, 10))
    sim.delivery.forget_written()
    sim.delivery.committed(1)
    assert (sim.turns, sim.store.reads) == ([[0]], [(0, 1)])


def test_a_snapshot_skips_what_it_contains() -> None:
    sim = Sim()
    sim.delivery.committed(4)
    sim.delivery.restart_at(10)
    sim.clock.run_for(0)
    sim.delivery.committed(11)
    assert sim.turns == [[0, 1], [10]]


def test_a_stopped_delivery_reports_nothing_more() -> None:
    sim = Sim()
    sim.delivery.committed(5)
    sim.delivery.stop()
    sim.clock.run_for(0)
    assert (sim.turns, sim.delivered) == ([[0, 1]], 0)


def test_a_log_that_cannot_be_read_later_is_reported() -> None:
    sim = Sim()
    sim.store.broken_at = 3
    sim.delivery.committed(5)
    sim.clock.run_for(0)
    assert [str(failure) for failure in sim.failures] == ["unreadable"]
