"""Random producers, and everything that can go wrong: requests repeated, late and out of order, appends and markers
lost, coordinators that crash, clocks that jump. Afterwards nothing hangs, and every promise was kept.

Producers of protocol 2 are exposed to all of that. Producers of protocol 1 send one request at a time over a network
that may lose but not reorder requests: that protocol cannot distinguish late requests from new ones, which is why
protocol 2 exists.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from quire.coordinators.transaction.transaction_state import TransactionState
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from tests.coordinators.transaction.sim_cluster import NODES, SimCluster, SimProducer
from tests.coordinators.transaction.sim_partitions import Name

PARTITIONS: list[Name] = [("t", 0), ("t", 1), ("u", 0), ("u", 1)]
PRODUCERS = st.integers(0, 2)
SOME = st.integers(0, 9)
HOUR_MS = 3_600_000

Identity = tuple[int, int]


class Faults(RuleBasedStateMachine):
    """A cluster and the events in it; subclasses add the producers."""

    transaction_version = 2

    def __init__(self) -> None:
        super().__init__()
        self.cluster = SimCluster(self.transaction_version)

    @rule(held=st.booleans())
    def the_log_is_slow(self, held: bool) -> None:
        self.cluster.shard.holding = held
        if not held:
            self.cluster.shard.commit()

    @precondition(lambda self: self.cluster.shard.held)
    @rule(count=st.integers(1, 3))
    def some_appends_are_committed(self, count: int) -> None:
        self.cluster.shard.commit(count)

    @rule(kept=st.integers(0, 2))
    def the_coordinator_crashes(self, kept: int) -> None:
        self.cluster.shard.fail(kept=kept)

    @rule(held=st.booleans())
    def the_network_is_slow(self, held: bool) -> None:
        self.cluster.channel.holding = held

    @precondition(lambda self: self.cluster.channel.requests)
    @rule()
    def a_request_arrives(self) -> None:
        self.cluster.channel.deliver()

    @precondition(lambda self: self.cluster.channel.requests)
    @rule()
    def a_request_is_lost(self) -> None:
        self.cluster.channel.lose()

    @precondition(lambda self: self.cluster.channel.answers)
    @rule(number=SOME)
    def an_answer_arrives(self, number: int) -> None:
        self.cluster.channel.answer(number % len(self.cluster.channel.answers))

    @precondition(lambda self: self.cluster.channel.answers)
    @rule(number=SOME)
    def an_answer_is_lost(self, number: int) -> None:
        self.cluster.channel.lose_answer(number % len(self.cluster.channel.answers))

    @rule(node_id=st.sampled_from(NODES))
    def a_node_cannot_be_reached(self, node_id: int) -> None:
        self.cluster.channel.down ^= {node_id}

    @rule(name=st.sampled_from(PARTITIONS), leader=st.sampled_from((*NODES, -1)))
    def a_leader_is_elected(self, name: Name, leader: int) -> None:
        self.cluster.elect(name, leader)

    @rule(duration_ms=st.sampled_from((1, 25, 1_000, 12_000, 35_000, 75_000)))
    def time_passes(self, duration_ms: int) -> None:
        self.cluster.clock.run_for(duration_ms)

    @rule(by_ms=st.sampled_from((-HOUR_MS, -20_000, 50_000, HOUR_MS)))
    def the_clock_jumps(self, by_ms: int) -> None:
        self.cluster.clock.jump_wall(by_ms)

    @rule(has=st.booleans())
    def there_are_producer_ids_or_not(self, has: bool) -> None:
        self.cluster.has_producer_ids = has

    def all_is_well_again(self) -> None:
        cluster = self.cluster
        cluster.has_producer_ids = True
        cluster.channel.down.clear()
        for name in PARTITIONS:
            cluster.elect(name, NODES[0])
        cluster.channel.holding = cluster.shard.holding = False
        cluster.shard.commit()
        while cluster.channel.requests:
            cluster.channel.deliver()
        while cluster.channel.answers:
            cluster.channel.answer()
        cluster.clock.jump_wall(100 * HOUR_MS)  # Further than the clock can have been set back.
        cluster.clock.run_for(HOUR_MS / 10)

    # --- Invariants

    def check_nothing_hangs(self) -> None:
        for partition in self.cluster.partitions.values():
            assert not partition.is_open, partition.name
        for transaction in self.cluster.shard.machine._transactions:
            assert transaction.is_at_rest, transaction

    def decisions(self) -> dict[Identity, tuple[bool, Counter[Name]]]:
        """For each marker, its result and its partitions, from the coordinator's log."""
        decided: dict[Identity, tuple[bool, Counter[Name]]] = {}
        for entry in self.cluster.shard.log:
            record = self.cluster.shard.machine.record_types.decode(entry.key, entry.value)
            value = record.value
            if not isinstance(value, TransactionLogValue):
                continue
            assert isinstance(record.key, TransactionLogKey)
            if value.transaction_status in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
                names = Counter(
                    (topic.topic, index)
                    for topic in value.transaction_partitions or []
                    for index in topic.partition_ids
                )
                identity = value.producer_id, value.producer_epoch
                assert identity not in decided, f"{identity} was decided twice"
                decided[identity] = value.transaction_status == TransactionState.PREPARE_COMMIT, names
        return decided


class AnythingGoes(Faults):
    """Producers of protocol 2. A transaction is a producer id and epoch: each is used for one."""

    def __init__(self) -> None:
        super().__init__()
        self.producers = [SimProducer(self.cluster, f"P{number}", f"id{number % 2}") for number in range(3)]
        self.sent: list[Callable[[], Pending[Any]]] = []
        self.acknowledged: dict[Identity, set[bool]] = {}

    def send(self, request: Callable[[], Pending[Any]]) -> None:
        self.sent.append(request)
        request()

    @rule(who=PRODUCERS, goes_on=st.booleans())
    def init(self, who: int, goes_on: bool) -> None:
        self.producers[who].init(goes_on=goes_on)

    @rule(who=PRODUCERS)
    def near_the_last_epoch(self, who: int) -> None:
        """Gives an unused transactional id a new producer id, whose epochs are nearly used up."""
        transactional_id = self.producers[who].transactional_id
        transaction = self.cluster.shard.machine._transactions.get(transactional_id)
        if transaction is None and not self.cluster.shard.held:
            self.cluster.next_producer_id += 1
            self.cluster.given(transactional_id, self.cluster.next_producer_id - 1, 32764)

    @rule(who=PRODUCERS, name=st.sampled_from(PARTITIONS))
    def produce(self, who: int, name: Name) -> None:
        producer = self.producers[who]
        copy = SimProducer(self.cluster, producer.name, producer.transactional_id)
        copy.producer_id, copy.epoch = producer.producer_id, producer.epoch
        self.send(lambda: copy.produce(name))

    @rule(who=PRODUCERS, commit=st.booleans())
    def end(self, who: int, commit: bool) -> None:
        producer = self.producers[who]
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=commit,
        )

        def send() -> Pending[Any]:
            asks = SimProducer(self.cluster, producer.name, producer.transactional_id)
            return asks.send_end(request).then(lambda answer: self.ended(producer, request, answer))

        self.send(send)

    def ended(self, producer: SimProducer, request: EndTxnRequest, answer: tuple[ErrorCode, int, int]) -> None:
        code, producer_id, epoch = answer
        if code is not ErrorCode.NONE:
            return
        identity = request.producer_id, request.producer_epoch
        self.acknowledged.setdefault(identity, set()).add(request.committed)
        if (producer.producer_id, producer.epoch) == identity:
            producer.producer_id, producer.epoch = producer_id, epoch

    @precondition(lambda self: self.sent)
    @rule(number=SOME)
    def an_earlier_request_arrives_again(self, number: int) -> None:
        self.sent[-1 - number % len(self.sent)]()

    @precondition(lambda self: self.cluster.channel.requests)
    @rule(number=SOME, again=st.booleans())
    def markers_overtake_each_other(self, number: int, again: bool) -> None:
        self.cluster.channel.deliver(number % len(self.cluster.channel.requests), keep=again)

    def teardown(self) -> None:
        self.all_is_well_again()
        self.check_nothing_hangs()
        decisions = self.decisions()
        self.check_markers_are_as_decided(decisions)
        self.check_records(decisions)
        for identity, said in self.acknowledged.items():
            assert len(said) == 1, f"{identity} was told that it was committed, and that it was aborted"
            producer_id, epoch = identity
            assert decisions[producer_id, epoch + 1][0] in said, f"{identity} was told what is not so"

    def check_markers_are_as_decided(self, decisions: dict[Identity, tuple[bool, Counter[Name]]]) -> None:
        """Each partition of a transaction has exactly one marker of it, with the right result, and no other partition
        has one."""
        written: dict[Identity, Counter[Name]] = {identity: Counter() for identity in decisions}
        for name, partition in self.cluster.partitions.items():
            for entry in partition.entries:
                if entry.is_marker:
                    identity = entry.producer_id, entry.producer_epoch
                    assert entry.what == ("COMMIT" if decisions[identity][0] else "ABORT")
                    written[identity][name] += 1
        for identity, (_, names) in decisions.items():
            assert written[identity] == names, identity

    def check_records(self, decisions: dict[Identity, tuple[bool, Counter[Name]]]) -> None:
        for partition in self.cluster.partitions.values():
            for position, entry in enumerate(partition.entries):
                if not entry.is_marker:
                    commit, names = decisions[entry.producer_id, entry.producer_epoch + 1]
                    assert partition.verdict(entry, position) == ("COMMIT" if commit else "ABORT")
                    assert partition.name in names


class OneAfterTheOther(Faults):
    """Producers of protocol 1. Each batch has the number of its transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.producers = [SimProducer(self.cluster, f"P{number}", f"id{number % 2}", 1) for number in range(3)]
        self.busy: dict[int, Pending[Any]] = {}
        self.ending: dict[int, bool] = {}
        """The end that a producer has requested for its transaction."""
        self.acknowledged: dict[str, bool] = {}

    def is_free(self, who: int) -> bool:
        return who not in self.busy or self.busy[who].done

    @rule(who=PRODUCERS)
    def init(self, who: int) -> None:
        if not self.is_free(who):
            return
        producer = self.producers[who]

        def answered(answer: tuple[ErrorCode, int, int]) -> None:
            if answer[0] is ErrorCode.NONE:
                self.ending.pop(who, None)
                producer.transaction += 1

        self.busy[who] = producer.init().then(answered)

    @rule(who=PRODUCERS, names=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True))
    def add(self, who: int, names: list[Name]) -> None:
        if self.is_free(who) and who not in self.ending:
            self.busy[who] = self.producers[who].add(*names)

    @rule(who=PRODUCERS, name=st.sampled_from(PARTITIONS))
    def produce(self, who: int, name: Name) -> None:
        if self.is_free(who) and who not in self.ending:
            self.busy[who] = self.producers[who].produce(name)

    @rule(who=PRODUCERS, commit=st.booleans())
    def end(self, who: int, commit: bool) -> None:
        """A request is repeated until there is an answer."""
        if not self.is_free(who):
            return
        producer = self.producers[who]
        wanted = self.ending.setdefault(who, commit)

        def answered(answer: tuple[ErrorCode, int, int]) -> None:
            if answer[0] is ErrorCode.NONE:
                self.acknowledged[producer.what] = wanted
                del self.ending[who]
                producer.transaction += 1
            elif answer[0] is ErrorCode.INVALID_TXN_STATE:
                del self.ending[who]  # There was no transaction to end.

        self.busy[who] = producer.end(commit=wanted).then(answered)

    def teardown(self) -> None:
        self.all_is_well_again()
        self.check_nothing_hangs()
        verdicts: dict[str, set[str]] = {}
        for partition in self.cluster.partitions.values():
            for position, entry in enumerate(partition.entries):
                if not entry.is_marker:
                    verdicts.setdefault(entry.what, set()).add(partition.verdict(entry, position))
        for what, said in verdicts.items():
            assert len(said) == 1, f"{what} was torn apart"
            if what in self.acknowledged:
                assert said == {"COMMIT" if self.acknowledged[what] else "ABORT"}, what


class OneAfterTheOtherInAnOldCluster(OneAfterTheOther):
    transaction_version = 0

    def decisions(self) -> dict[Identity, tuple[bool, Counter[Name]]]:
        raise AssertionError("epochs stay the same from transaction to transaction")


SETTINGS = settings(max_examples=120, stateful_step_count=70, deadline=None)

TestAnythingGoes = AnythingGoes.TestCase
TestAnythingGoes.settings = SETTINGS
TestOneAfterTheOther = OneAfterTheOther.TestCase
TestOneAfterTheOther.settings = SETTINGS
TestOneAfterTheOtherInAnOldCluster = OneAfterTheOtherInAnOldCluster.TestCase
TestOneAfterTheOtherInAnOldCluster.settings = SETTINGS
