"""A coordinator that crashes once, at any step of any path: nothing hangs, and every response stays true.

A step is an append that is committed, a request with markers that arrives, or its answer. For each path, a first run
without a crash counts the steps; then the path is run once for each step, with the crash right before it: the
append may be lost, or be in the log without a response, and messages in flight may still arrive.
"""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer
from tests.coordinators.transaction.sim_partitions import Name

TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Script = Generator[Callable[[], Pending[Any]], ErrorCode, dict[str, str]]
"""Yields requests, gets the code of each when no retry is needed, and returns how its transactions must have ended."""

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


def produce(producer: SimProducer, *names: Name) -> Generator[Callable[[], Pending[Any]], ErrorCode, None]:
    for name in names:
        code = yield lambda name=name: producer.produce(name)  # type: ignore[misc]
        assert code is ErrorCode.NONE


def commits(cluster: SimCluster) -> Script:
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    yield from produce(producer, T0, T1)
    code = yield lambda: producer.end(commit=True)
    assert code is ErrorCode.NONE
    producer.transaction = 1
    yield from produce(producer, T0)
    yield lambda: producer.end(commit=True)
    return {"P#0": "COMMIT", "P#1": "COMMIT"}


def aborts(cluster: SimCluster) -> Script:
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    yield from produce(producer, T0, T1)
    yield lambda: producer.end(commit=False)
    yield lambda: producer.end(commit=False)
    producer.transaction = 1
    yield from produce(producer, T1)
    yield lambda: producer.end(commit=True)
    return {"P#0": "ABORT", "P#1": "COMMIT"}


def older_client_commits_with_offsets(cluster: SimCluster) -> Script:
    producer = SimProducer(cluster, "P", "orders", 1)
    yield producer.init
    for number, commit in enumerate((True, False, True)):
        producer.transaction = number
        yield lambda: producer.add(T0, T1)
        yield producer.add_offsets
        yield from produce(producer, T0, T1)
        code = yield lambda commit=commit: producer.end(commit=commit)  # type: ignore[misc]
        assert code is ErrorCode.NONE
    return {"P#0": "COMMIT", "P#1": "ABORT", "P#2": "COMMIT"}


def a_newer_producer_takes_over(cluster: SimCluster) -> Script:
    old, new = SimProducer(cluster, "OLD", "orders"), SimProducer(cluster, "NEW", "orders")
    yield old.init
    yield from produce(old, T0, U0)
    yield new.init
    code = yield lambda: old.end(commit=True)
    assert code is ErrorCode.PRODUCER_FENCED
    yield from produce(new, T0)
    yield lambda: new.end(commit=True)
    return {"OLD#0": "ABORT", "NEW#0": "COMMIT"}


def a_producer_goes_on(cluster: SimCluster) -> Script:
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    yield from produce(producer, T0)
    code = yield lambda: producer.init(goes_on=True)
    if code is ErrorCode.PRODUCER_FENCED:  # Its earlier request is not in the log.
        yield producer.init
    producer.transaction = 1
    yield from produce(producer, T0)
    yield lambda: producer.end(commit=True)
    return {"P#0": "ABORT", "P#1": "COMMIT"}


def it_times_out(cluster: SimCluster) -> Script:
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    yield from produce(producer, T0, T1)
    yield lambda: wait(cluster, 80_000)
    code = yield lambda: producer.end(commit=True)
    assert code is ErrorCode.PRODUCER_FENCED
    yield lambda: producer.end(commit=False)
    producer.transaction = 1
    yield from produce(producer, T0)
    yield lambda: producer.end(commit=True)
    return {"P#0": "ABORT", "P#1": "COMMIT"}


def epochs_are_used_up(cluster: SimCluster) -> Script:
    cluster.given("orders", 7, 32765)
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    yield from produce(producer, T0)
    code = yield lambda: producer.end(commit=True)
    assert code is ErrorCode.NONE and producer.producer_id >= 1000
    producer.transaction = 1
    yield from produce(producer, T0)
    yield lambda: producer.end(commit=True)
    return {"P#0": "COMMIT", "P#1": "COMMIT"}


def it_times_out_in_the_last_epoch(cluster: SimCluster) -> Script:
    cluster.given("orders", 7, 32765)
    producer = SimProducer(cluster, "P", "orders")
    yield producer.init
    last = producer.producer_id == 7
    yield from produce(producer, T0)
    yield lambda: wait(cluster, 100_000)
    code = yield lambda: producer.end(commit=False)
    assert code is ErrorCode.NONE and (producer.epoch == 0 or not last)
    producer.transaction = 1
    yield from produce(producer, T0)
    yield lambda: producer.end(commit=True)
    return {"P#0": "ABORT", "P#1": "COMMIT"}


PATHS = [
    commits,
    aborts,
    older_client_commits_with_offsets,
    a_newer_producer_takes_over,
    a_producer_goes_on,
    it_times_out,
    epochs_are_used_up,
    it_times_out_in_the_last_epoch,
]


def wait(cluster: SimCluster, duration_ms: float) -> Pending[ErrorCode]:
    done: Pending[ErrorCode] = Pending()
    cluster.clock.call_later(duration_ms, lambda: done.complete(ErrorCode.NONE))
    return done


class Stage:
    """Plays a path step by step, with a crash before step `crash_at`."""

    def __init__(self, path: Callable[[SimCluster], Script], transaction_version: int) -> None:
        self.cluster = SimCluster(transaction_version)
        self.script = path(self.cluster)
        self.steps = 0
        self.crash_at = -1
        self.crash: Callable[[SimCluster], None] = SimCluster.crash

    def play(self) -> dict[str, str]:
        """How the transactions must have ended."""
        request = next(self.script)
        self.cluster.shard.holding = self.cluster.channel.holding = True
        try:
            while True:
                request = self.script.send(self.ask(request))
        except StopIteration as end:
            self.settle()
            return end.value  # type: ignore[no-any-return]

    def ask(self, request: Callable[[], Pending[Any]]) -> ErrorCode:
        for _ in range(100):
            answer = request()
            while not answer.done:
                if not self.step():
                    assert self.cluster.clock.step(), self.cluster.story
            code = answer.value[0] if isinstance(answer.value, tuple) else answer.value
            assert isinstance(code, ErrorCode)
            if code not in TRY_AGAIN:
                return code
            if not self.step():
                self.cluster.clock.run_for(100)
        raise AssertionError("\n".join(["no producer makes progress", *self.cluster.story[-30:]]))

    def step(self) -> bool:
        shard, channel = self.cluster.shard, self.cluster.channel
        if not (shard.held or channel.requests or channel.answers):
            return False
        self.steps += 1
        if self.steps == self.crash_at:
            self.crash(self.cluster)
        elif shard.held:
            shard.commit(1)
        elif channel.requests:
            channel.deliver()
        else:
            channel.answer()
        return True

    def settle(self) -> None:
        while self.step():
            pass
        self.cluster.clock.run_for(60_000)
        while self.step():
            pass


def crash_and_lose_all(cluster: SimCluster) -> None:
    cluster.crash()


def crash_with_the_append_in_the_log(cluster: SimCluster) -> None:
    cluster.channel.requests.clear()
    cluster.channel.answers.clear()
    cluster.shard.fail(kept=1)


def crash_with_markers_on_their_way(cluster: SimCluster) -> None:
    """The markers arrive after those of the next coordinator, and their responses are lost."""
    late = list(cluster.channel.requests)
    cluster.crash()
    cluster.channel.requests.extend(late)


CRASHES = [crash_and_lose_all, crash_with_the_append_in_the_log, crash_with_markers_on_their_way]


def check(stage: Stage, expected: dict[str, str]) -> None:
    story = "\n".join(stage.cluster.story)
    for partition in stage.cluster.partitions.values():
        assert not partition.is_open, f"a transaction hangs in {partition.name}\n{story}"
        for position, entry in enumerate(partition.entries):
            if not entry.is_marker:
                assert partition.verdict(entry, position) == expected[entry.what], f"{partition.name} {entry}\n{story}"


@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: crash.__name__)
@pytest.mark.parametrize(
    ("path", "transaction_version"),
    [*((path, 2) for path in PATHS), (older_client_commits_with_offsets, 0), (older_client_commits_with_offsets, 1)],
    ids=lambda value: value if isinstance(value, int) else value.__name__,
)
def test_a_crash_at_any_step_leaves_nothing_hanging_and_nothing_undone(
    path: Callable[[SimCluster], Script], crash: Callable[[SimCluster], None], transaction_version: int
) -> None:
    undisturbed = Stage(path, transaction_version)
    check(undisturbed, undisturbed.play())
    assert undisturbed.steps > 4
    for crash_at in range(1, undisturbed.steps + 1):
        stage = Stage(path, transaction_version)
        stage.crash_at, stage.crash = crash_at, crash
        check(stage, stage.play())
