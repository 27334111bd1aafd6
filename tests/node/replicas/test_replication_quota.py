"""One quota: what is throttled, and who is woken when."""

from quire.node.replicas.rate_window import RateWindow
from quire.node.replicas.replication_quota import RESERVE_MS, UNLIMITED, ReplicationQuota
from simulator.clock import HostClock, SimClock


class Waiter:
    def __init__(self, name: str, woken: list[str]) -> None:
        self._name = name
        self._woken = woken

    def has_quota(self) -> None:
        self._woken.append(self._name)


class Stage:
    def __init__(self, rate: int) -> None:
        self.clock = SimClock()
        self.quota = ReplicationQuota(HostClock(self.clock), RateWindow(11, 1000), rate)
        self.woken: list[str] = []
        self.waiters = [Waiter(name, self.woken) for name in "abc"]

    def wait(self) -> None:
        for waiter in self.waiters:
            self.quota.wait(waiter)


def test_only_what_is_listed_is_throttled() -> None:
    quota = Stage(1000).quota
    quota.throttled = {"some": frozenset((1, 3)), "all": None}
    assert [quota.is_throttled("some", index) for index in range(4)] == [False, True, False, True]
    assert quota.is_throttled("all", 7) and not quota.is_throttled("other", 0)


def test_those_who_wait_are_woken_by_one_timer_when_there_is_room_again() -> None:
    stage = Stage(1000)
    stage.quota.record(3000)
    assert stage.quota.is_used_up and stage.quota.left_ms == 3000 + RESERVE_MS
    stage.wait()
    stage.clock.run_for(3000 + RESERVE_MS - 1)
    assert stage.woken == [] and stage.quota.is_used_up
    stage.clock.run_for(1)
    assert sorted(stage.woken) == ["a", "b", "c"] and not stage.quota.is_used_up
    assert stage.quota.room_bytes == RESERVE_MS
    stage.clock.run_for(60_000)
    assert len(stage.woken) == 3


def test_each_of_those_who_wait_is_the_first_in_turn() -> None:
    stage, firsts = Stage(1000), []
    for _ in range(6):
        stage.quota.record(2000)
        for name in stage.woken[-3:] or ["a", "b", "c"]:
            stage.quota.wait(stage.waiters["abc".index(name)])
        stage.clock.run_for(11_000)
        firsts.append(stage.woken[-3])
    assert sorted(firsts) == ["a", "a", "b", "b", "c", "c"]


def test_who_waits_is_not_woken_before_what_arrived_since_is_paid_for() -> None:
    stage = Stage(1000)
    stage.quota.record(3000)
    stage.wait()
    stage.quota.record(2000)
    stage.clock.run_for(4_999)
    assert stage.woken == []
    stage.clock.run_for(200)
    assert stage.woken


def test_another_rate_counts_at_once_for_what_was_recorded_before() -> None:
    stage = Stage(UNLIMITED)
    stage.quota.record(5000)
    assert not stage.quota.is_used_up
    stage.quota.set_rate(1000)
    assert stage.quota.is_used_up
    stage.wait()
    stage.quota.set_rate(10_000)
    assert not stage.quota.is_used_up and stage.woken == []
    stage.quota.wake_now()
    assert stage.woken == ["a", "b", "c"]


def test_nobody_is_woken_after_the_end() -> None:
    stage = Stage(1000)
    stage.quota.record(3000)
    stage.wait()
    stage.quota.close()
    stage.clock.run_for(60_000)
    assert stage.woken == []
