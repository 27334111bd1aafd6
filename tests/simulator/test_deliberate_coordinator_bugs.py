"""Bugs put into groups, offsets and transactions on purpose: the simulator must find each within a few seeds."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from quire.coordinators.group.classic import classic_groups, sync_group
from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import restore
from quire.coordinators.group.classic.member import Member
from quire.coordinators.group.classic.rebalance import Rebalance
from quire.coordinators.group.classic.sessions import Sessions
from quire.coordinators.group.consumer import changes, consumer_groups, heartbeat
from quire.coordinators.group.consumer.member import CurrentAssignment
from quire.coordinators.group.consumer.member import Member as ConsumerMember
from quire.coordinators.group.consumer.reconciliation import Goal, Owned, reconcile
from quire.coordinators.group.consumer.sessions import Sessions as ConsumerSessions
from quire.coordinators.group.machine import GroupMachine
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.runtime import loader
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.shard import Shard
from quire.coordinators.transaction import end_txn
from quire.coordinators.transaction.marker_sender import MarkerSender
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transactions import Markers
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.group_records import GroupMetadataValue
from quire.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from quire.protocol.messages.sync_group import SyncGroupResponse
from quire.replication.partition import Partition
from quire.seams import FileSlice
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.producer_state import ProducerEntry
from simulator.checks.transaction_checker import ALL_SHOWN, FENCED, NOT_SHOWN
from simulator.consumer_group_ledger import ONE_OWNER as OWNED_BY_TWO
from simulator.group_ledger import AS_MADE, NEVER_BACK, ONE_OWNER
from simulator.offset_ledger import NEVER_EARLIER, NOT_LOST
from simulator.plan import GroupPlan, Plan, TransactionalPlan, plan_of
from simulator.transaction_ledger import ATOMIC
from simulator.world import World

MOST_SEEDS = 25
HANGS = "the node never hangs"
ENDED_ONLY = "an offset of an open or aborted transaction does not count"
EPOCH_ONCE = "a producer epoch is given once"
ONE_BY_ONE = "a producer's transactions come one after the other"
STABLE = "the last stable offset never goes back for a reader"


def broken_promise(change: Callable[[Plan], Plan], **faults: int) -> str:
    """The promise that the bug breaks, and clients and faults with which the simulator finds it."""
    for seed in range(MOST_SEEDS):
        chosen = {name.replace("_", " "): weight for name, weight in faults.items()}
        plan = plan_of(seed, scale=0.4)
        plan = replace(plan, plain_acks=[1], idempotent_producers=0, consumers=0, session_consumers=0, vandal=False)
        plan = replace(change(plan), faults=chosen, fault_pause_ms=200.0)
        outcome = World(seed, plan).run()
        if outcome.violation is not None:
            return outcome.violation.partition(":")[0]
    return "none"


def with_transactions(plan: Plan) -> Plan:
    """Two producers compete for one transactional id, and a third one has its own."""
    both = [TransactionalPlan((1, 2), abandons=False), TransactionalPlan((2,), abandons=False)]
    return replace(plan, groups=[], transactional=both)


def with_groups(plan: Plan) -> Plan:
    return replace(plan, groups=[GroupPlan("group", 3, 1, double=False)], transactional=[])


def with_consumer_groups(plan: Plan) -> Plan:
    return replace(plan, groups=[GroupPlan("group", 3, 0, double=False, consumer_protocol=True)], transactional=[])


class TestTransactions:
    def test_a_forgotten_marker_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write = MarkerSender.write

        def forgetful(self: MarkerSender, markers: list[Markers]) -> None:
            for each in markers:
                first = next(iter(each.partitions.items()))
                write(self, [each._replace(partitions={first[0]: first[1][:1]})])

        monkeypatch.setattr(MarkerSender, "write", forgetful)
        # It stays open forever, or the end of the next one ends it too.
        assert broken_promise(with_transactions) in (HANGS, ALL_SHOWN, NOT_SHOWN, ATOMIC, ENDED_ONLY)

    def test_a_last_stable_offset_that_is_one_too_high_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = vars(Partition)["last_stable_offset"].fget
        wrong = property(lambda self: min(right(self) + 1, self.high_watermark))
        monkeypatch.setattr(Partition, "last_stable_offset", wrong)
        assert broken_promise(with_transactions) in (NOT_SHOWN, "no client reads past the last stable offset")

    def test_aborted_transactions_missing_from_the_response_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def silent(self: Partition, offset: int, part: FileSlice) -> list[AbortedTransaction]:
            return []

        monkeypatch.setattr(Partition, "aborted_transactions", silent)
        assert broken_promise(with_transactions) == NOT_SHOWN

    def test_a_replaced_producer_that_may_still_end_a_transaction_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("_protocol_1", "_protocol_2"):
            monkeypatch.setattr(end_txn, name, trusting(getattr(end_txn, name)))
        # Or the producer that replaced it is refused, because its transaction was ended.
        assert broken_promise(with_transactions) in (FENCED, ATOMIC, NOT_SHOWN, "errors have a cause")

    def test_a_duplicate_that_is_none_and_is_acknowledged_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ProducerEntry, "check_transaction_of", lambda self, original: None)
        one = [TransactionalPlan((1,), abandons=False)] * 3
        promises = (ALL_SHOWN, "an offset is given once")
        assert broken_promise(lambda plan: replace(plan, groups=[], transactional=one)) in promises

    def test_an_answer_that_does_not_wait_for_the_log_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        complete = Shard._complete_deferred

        def hasty(self: Shard[GroupMachine]) -> None:
            self._committed = self._last_number
            complete(self)

        monkeypatch.setattr(Shard, "_complete_deferred", hasty)
        # If the decision is lost, the next transaction begins although the last one has no marker: ONE_BY_ONE.
        promises = (
            ATOMIC,
            ALL_SHOWN,
            NOT_LOST,
            NEVER_EARLIER,
            HANGS,
            FENCED,
            EPOCH_ONCE,
            ONE_BY_ONE,
            "errors have a cause",
        )
        assert broken_promise(with_transactions, bad_own_requests=2, kill=1) in promises

    def test_offsets_of_aborted_transactions_that_count_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        end = OffsetStore.replay_end

        def generous(self: OffsetStore, producer_id: int, *, committed: bool) -> None:
            end(self, producer_id, committed=True)

        monkeypatch.setattr(OffsetStore, "replay_end", generous)
        assert broken_promise(with_transactions) == ENDED_ONLY


def trusting(
    decide: Callable[[Transaction, EndTxnRequest], end_txn.EndTxnAction],
) -> Callable[[Transaction, EndTxnRequest], end_txn.EndTxnAction]:
    """Treats every producer as the latest one of its transactional id."""

    def decided(transaction: Transaction, request: EndTxnRequest) -> end_txn.EndTxnAction:
        request.producer_epoch = transaction.producer_epoch
        return decide(transaction, request)

    return decided


class TestGroups:
    def test_a_commit_that_is_lost_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit = GroupMachine.offset_commit
        calls = 0

        def forgetful(
            self: GroupMachine, request: OffsetCommitRequest, caller: Caller, now_ms: int
        ) -> CoordinatorResult[OffsetCommitResponse]:
            nonlocal calls
            calls += 1
            result = commit(self, request, caller, now_ms)
            return result if calls % 5 else CoordinatorResult(result.response)

        monkeypatch.setattr(GroupMachine, "offset_commit", forgetful)
        assert broken_promise(with_groups) in (NOT_LOST, NEVER_EARLIER)

    def test_two_owners_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def confused(group: ClassicGroup, member: Member) -> SyncGroupResponse:
            first = next(iter(group.members.values()))
            return SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=first.assignment
            )

        monkeypatch.setattr(sync_group, "_response", confused)
        assert broken_promise(with_groups) in (ONE_OWNER, AS_MADE)

    def test_a_generation_that_goes_back_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def older(group: ClassicGroup, value: GroupMetadataValue) -> None:
            restore(group, value)
            group.generation -= 2

        monkeypatch.setattr(classic_groups, "restore", older)
        promises = (NEVER_BACK, "a live member is not removed")
        assert broken_promise(with_groups, kill=1) in promises

    def test_a_session_that_is_too_short_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def impatient(self: Sessions, member: Member) -> None:
            assert member.expire is not None
            self._timers.schedule(member.session_key, member.session_timeout_ms / 10, member.expire)

        monkeypatch.setattr(Sessions, "renew_session", impatient)
        assert broken_promise(with_groups) == "a live member is not removed"

    def test_a_group_that_waits_for_ever_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def patient(self: Rebalance, group: ClassicGroup, delay_ms: int) -> None:
            """Waits for members that do not join again."""

        monkeypatch.setattr(Rebalance, "_complete_join_after", patient)
        monkeypatch.setattr(Sessions, "renew_session", lambda self, member: None)
        assert broken_promise(with_groups) in (HANGS, "every request is answered")


class TestConsumerGroups:
    def test_a_partition_that_is_given_away_before_it_is_given_up_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def hasty(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
            return reconcile(current, goal._replace(is_free=lambda topic_id, partition: True), owned)

        monkeypatch.setattr(changes, "reconcile", hasty)
        assert broken_promise(with_consumer_groups) == OWNED_BY_TWO

    def test_a_session_that_is_too_short_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        renew = ConsumerSessions.renew_session

        def impatient(self: ConsumerSessions, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
            renew(self, group_id, member_id, timeout_ms // 20, now_ms)

        monkeypatch.setattr(ConsumerSessions, "renew_session", impatient)
        assert broken_promise(with_consumer_groups) in ("a live member is not removed", OWNED_BY_TWO)

    def test_a_member_without_a_notification_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        respond = heartbeat.heartbeat_response

        def silent(
            member: ConsumerMember, interval_ms: int, *, with_assignment: bool
        ) -> ConsumerGroupHeartbeatResponse:
            return respond(member, interval_ms, with_assignment=False)

        monkeypatch.setattr(consumer_groups, "heartbeat_response", silent)
        assert broken_promise(with_consumer_groups) == HANGS


class TestLoading:
    def test_a_header_that_a_read_cuts_in_two_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loader, "HEADER_BYTES", 0)
        assert broken_promise(with_groups, kill=1) == HANGS
