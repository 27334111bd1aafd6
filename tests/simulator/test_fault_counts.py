"""A fault counts when it first affects something, and not when it is announced."""

import errno

import pytest

from quire.pending import completed
from simulator.clock import HostClock, SimClock
from simulator.disk import SimDisk
from simulator.fault_counts import FaultCounts
from simulator.jobs import SimJobs
from simulator.machine import Death, MachineState
from simulator.network import Conditions, SimNetwork
from simulator.own_requests import OwnConditions, Unreliable
from simulator.random import SimRandom
from simulator.world import World

KIND = "fault"


def test_a_fault_counts_once_and_only_with_its_first_effect() -> None:
    counts = FaultCounts()
    effect = counts.announce(KIND)
    counts.announce(KIND)
    assert (counts.announced, counts.struck, counts.total) == ({KIND: 2}, {}, 0)
    effect()
    effect()
    assert (counts.struck, counts.total) == ({KIND: 1}, 1)


def test_a_full_disk_counts_when_a_write_does_not_fit() -> None:
    counts = FaultCounts()
    disk = SimDisk(capacity_bytes=10)
    disk.filled = counts.announce(KIND)
    disk.open("a", create=True).pwritev([b"12345"], 0)
    assert counts.total == 0
    after = disk.kill()
    with pytest.raises(OSError, match="No space left") as full:
        after.open("b", create=True).pwritev([b"123456"], 0)
    assert (full.value.errno, counts.total) == (errno.ENOSPC, 1)


def test_a_slow_disk_counts_when_a_job_takes_long() -> None:
    counts, clock = FaultCounts(), SimClock()
    for longest_ms, expected in ((5.0, 0), (5000.0, 1)):
        jobs = SimJobs(clock, SimRandom(1), longest_ms=longest_ms, felt=counts.announce(KIND))
        jobs.submit(lambda: None, lambda _: None, lambda _: None)
        clock.run_until_idle()
        assert counts.total == expected


def test_bad_own_requests_count_when_one_is_delayed_or_lost() -> None:
    counts = FaultCounts()
    conditions = OwnConditions(felt=counts.announce(KIND))
    way = Unreliable(HostClock(SimClock()), SimRandom(1), conditions)
    assert way.pass_on(lambda: completed(1)).done
    assert counts.total == 0
    conditions.loss_chance = 1.0
    assert not way.pass_on(lambda: completed(1)).done
    assert counts.total == 1


class Silent:
    """A client that sends nothing."""

    def buffer(self) -> memoryview:
        return memoryview(bytearray(1))

    def received(self, size: int) -> None: ...

    def drained(self) -> None: ...

    def closed(self, reason: str) -> None: ...


class Wire:
    """A node that accepts no connection, and a client that connects to it."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.network = SimNetwork(self.clock, SimRandom(1))
        self.network.host("node").listen("0.0.0.0", 9092, lambda _: None)
        self.counts = FaultCounts()
        self.felt = self.counts.announce(KIND)

    def connect(self, host: str = "client") -> None:
        self.network.host(host).connect("node", 9092, lambda _: Silent(), lambda _: None)
        self.clock.run_for(100.0)


def test_a_partition_counts_when_something_is_sent_across() -> None:
    wire = Wire()
    wire.network.partition("it", [("client", "node")], wire.felt)
    assert wire.network.is_cut("client", "node")
    wire.connect("another")
    assert wire.counts.total == 0
    wire.connect()
    assert wire.counts.total == 1


def test_refusals_and_slow_links_count_when_they_are_in_the_way() -> None:
    wire = Wire()
    wire.network.refuse("it", [("client", "node")], wire.felt)
    wire.network.delay("it", {("somebody", "node"): 5.0}, wire.counts.announce("slow"))
    wire.connect("another")
    assert wire.counts.total == 0
    wire.connect()
    wire.connect("somebody")
    assert wire.counts.struck == {KIND: 1, "slow": 1}


def test_a_bad_network_counts_when_it_makes_something_slow() -> None:
    wire = Wire()
    wire.network.conditions = Conditions(felt=wire.felt)
    wire.connect()
    assert wire.counts.total == 0
    wire.network.conditions.slow_chance = 1.0
    wire.connect()
    assert wire.counts.total == 1


def test_a_scheduled_death_counts_when_it_comes() -> None:
    world, counts = World(1, cast=lambda _: []), FaultCounts()
    machine = world.machine
    world.start()
    world.stepper.run_until(lambda: machine.state is MachineState.SERVING, 10_000.0, "the start")
    machine.schedule_death(Death.KILL, 1_000_000, counts.announce("never"))
    world.stepper.run_for(100.0)
    machine.schedule_death(Death.KILL, 1, counts.announce(KIND))
    assert counts.total == 0
    world.clock.call_soon(machine.stop)
    world.stepper.run_until(lambda: counts.total > 0, 10_000.0, "the death")
    assert counts.struck == {KIND: 1}
