"""A shard responds when its records are in the log, and after every failure its state is that of the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.coordinators.runtime.result import CoordinatorResult, WrittenBy
from quire.coordinators.runtime.shard import LONGEST_WAIT_MS, ShardState
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from tests.coordinators.runtime.notebook import WRITE_TIMEOUT_MS, Desk, MemoryLog, note


def code_of(answer: Pending[int | ApiError]) -> ErrorCode:
    assert isinstance(answer.value, ApiError)
    return answer.value.code


def test_an_operation_is_answered_at_once_when_its_records_are_committed_at_once() -> None:
    desk = Desk()
    assert desk.put("a", 1).value == 1
    assert desk.get("a").value == 1
    assert desk.log.end == 1


def test_an_answer_waits_for_its_records() -> None:
    desk = Desk()
    desk.log.holding = True
    answer = desk.put("a", 1)
    assert not answer.done
    desk.log.release()
    assert answer.value == 1


def test_an_answer_without_records_waits_for_what_it_may_rest_on() -> None:
    desk = Desk()
    desk.log.holding = True
    desk.put("a", 1)
    seen, refused = desk.get("a"), desk.get("b")
    assert not seen.done
    assert not refused.done
    desk.log.release()
    assert seen.value == 1
    assert code_of(refused) is ErrorCode.RESOURCE_NOT_FOUND


def test_operations_that_come_during_an_append_share_the_next_one() -> None:
    desk = Desk()
    desk.log.holding = True
    answers = [desk.put(str(number), number) for number in range(20)]
    desk.log.release()
    desk.log.release()
    assert [answer.value for answer in answers] == list(range(20))
    assert len(desk.log.batches) == 2


def test_a_shared_append_is_no_larger_than_the_log_accepts() -> None:
    desk = Desk(max_batch_bytes=500)
    desk.log.holding = True
    for number in range(20):
        desk.put(str(number), number)
    desk.log.holding = False
    desk.log.release()
    assert len(desk.log.batches) > 2
    assert max(map(len, desk.log.batches)) <= 500


def test_the_size_that_the_log_accepts_may_change_between_operations() -> None:
    desk = Desk(max_batch_bytes=500)
    refused = desk.put("n" * 600, 1)
    assert isinstance(refused.value, ApiError) and refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    desk.max_batch_bytes = 1_000
    assert desk.put("n" * 600, 1).value == 1


def test_records_without_a_waiter_share_the_next_append() -> None:
    desk = Desk()
    desk.run(lambda _: CoordinatorResult(0, [note("a", 1)], can_wait=True))
    assert desk.log.batches == []
    assert desk.put("b", 2).value == 2
    assert len(desk.log.batches) == 1
    assert desk.log.end == 2


def test_records_without_a_waiter_are_appended_before_a_response_that_depends_on_them() -> None:
    desk = Desk()
    desk.run(lambda _: CoordinatorResult(0, [note("a", 1)], can_wait=True))
    desk.log.holding = True
    answer = desk.get("a")
    assert not answer.done
    desk.log.release()
    assert answer.value == 1


def test_records_without_a_waiter_are_appended_soon() -> None:
    desk = Desk()
    answer = desk.run(lambda _: CoordinatorResult(1, [note("a", 1)], can_wait=True))
    desk.clock.run_for(LONGEST_WAIT_MS)
    assert answer.value == 1
    assert desk.log.end == 1


def test_records_that_can_wait_do_so_also_when_they_come_of_an_answer_being_given() -> None:
    desk = Desk()

    def written(_reason: ErrorCode) -> None:
        desk.run(lambda _: CoordinatorResult(0, [note("b", 2)], can_wait=True))

    desk.run(lambda _: CoordinatorResult(1, [note("a", 1)], when_written=written))
    assert desk.log.end == 1
    desk.shard.send_now()
    assert desk.log.end == 2


def test_records_that_can_wait_are_forgotten_with_a_shard_that_starts_over() -> None:
    desk = Desk()
    desk.run(lambda _: CoordinatorResult(0, [note("a", 1)], can_wait=True))
    desk.log.end = 7
    assert code_of(desk.put("b", 2)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.log.end = 0
    desk.clock.run_for(60_000)
    assert desk.shard.state is ShardState.ACTIVE
    assert desk.notebook.numbers == {}
    assert desk.log.batches == []


def test_records_that_are_too_large_are_refused_and_change_nothing() -> None:
    desk = Desk(max_batch_bytes=500)
    told: list[ErrorCode] = []
    answer = desk.run(lambda _: CoordinatorResult(1, [note("x" * 600, 1)], when_written=told.append))
    assert code_of(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert told == [ErrorCode.MESSAGE_TOO_LARGE]
    assert desk.notebook.numbers == {}
    assert desk.put("a", 1).value == 1


def test_a_refused_append_makes_the_shard_start_over_from_its_log() -> None:
    desk = Desk()
    desk.put("kept", 1)
    desk.log.holding = True
    lost, queued = desk.put("lost", 2), desk.put("queued", 3)
    desk.log.release(refusal=ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"))
    assert code_of(lost) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(queued) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.notebook.unloaded_with is ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(ApiError) as refused:
        desk.get("kept")
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    desk.log.holding = False
    desk.clock.run_for(200)
    assert desk.notebook.numbers == {"kept": 1}
    assert desk.get("kept").value == 1, "without waiting for what was lost"
    assert code_of(desk.get("lost")) is ErrorCode.RESOURCE_NOT_FOUND


def test_an_append_without_an_answer_is_given_up() -> None:
    desk = Desk()
    desk.log.holding = True
    answer = desk.put("a", 1)
    desk.clock.run_for(WRITE_TIMEOUT_MS)
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_an_append_that_arrives_after_it_was_given_up_is_found_when_replaying() -> None:
    desk = Desk()
    desk.log.holding = True
    desk.put("a", 1)
    desk.clock.run_for(WRITE_TIMEOUT_MS)
    desk.log.release(answered=False)
    desk.log.holding = False
    desk.clock.run_for(200)
    assert desk.notebook.numbers == {"a": 1}


def test_an_append_that_arrives_behind_newer_ones_changes_nothing() -> None:
    desk = Desk()
    desk.log.holding = True
    desk.put("a", 1)
    desk.clock.run_for(WRITE_TIMEOUT_MS + 200)
    desk.log.holding = False
    assert desk.put("a", 2).value == 2
    desk.log.release(answered=False)
    assert Desk(desk.log).notebook.numbers == {"a": 2}


def test_an_append_that_arrived_unseen_after_replaying_is_noticed_by_the_next() -> None:
    desk = Desk()
    desk.log.holding = True
    desk.put("a", 1)
    desk.clock.run_for(WRITE_TIMEOUT_MS + 200)
    desk.log.holding = False
    desk.log.release(answered=False)
    answer = desk.put("b", 2)
    assert code_of(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.clock.run_for(200)
    assert desk.notebook.numbers == {"a": 1}
    assert desk.put("b", 2).value == 2


def test_records_are_replayed_with_the_offsets_they_get() -> None:
    desk = Desk()
    desk.log.holding = True
    for name in "abc":
        desk.put(name, 1)
    ahead = dict(desk.notebook.offsets)
    desk.log.holding = False
    desk.log.release()
    assert ahead == {"a": 0, "b": 1, "c": 2} == Desk(desk.log).notebook.offsets


def test_records_of_a_transaction_count_when_it_is_committed() -> None:
    desk = Desk()
    producer = WrittenBy(7, 0)
    desk.put("plain", 1)
    desk.put("a", 2, producer)
    assert desk.notebook.numbers == {"plain": 1}
    assert Desk(desk.log).notebook.open == {7: {"a": 2}}
    assert desk.shard.end_transaction(7, 0, committed=True, coordinator_epoch=3).value is None
    assert desk.notebook.numbers == {"plain": 1, "a": 2} == Desk(desk.log).notebook.numbers


def test_records_of_an_aborted_transaction_never_count() -> None:
    desk = Desk()
    desk.put("a", 2, WrittenBy(7, 0))
    desk.shard.end_transaction(7, 0, committed=False, coordinator_epoch=3)
    assert desk.notebook.numbers == {} == Desk(desk.log).notebook.numbers
    assert desk.put("b", 1).value == 1


def test_a_parked_answer_is_the_machines_own_affair() -> None:
    desk = Desk()
    parked: Pending[int | ApiError] = Pending()
    desk.log.holding = True
    answer = desk.run(
        lambda _: CoordinatorResult(parked, [note("a", 1)], when_written=lambda code: parked.complete(int(code)))
    )
    assert answer is parked
    desk.log.release()
    assert parked.value == 0


def test_a_timer_runs_like_any_operation() -> None:
    desk = Desk()
    desk.notebook.timers.schedule("later", 50, lambda _now: CoordinatorResult(None, [note("a", 1)]))
    desk.clock.run_for(50)
    assert desk.log.end == 1
    assert desk.notebook.numbers == {"a": 1}


def test_the_timers_of_a_machine_are_gone_with_it() -> None:
    desk = Desk()
    desk.notebook.timers.schedule("later", 1000, lambda _now: CoordinatorResult(None, [note("a", 1)]))
    desk.log.holding = True
    desk.put("b", 1)
    desk.log.release(refusal=ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"))
    desk.log.holding = False
    desk.clock.run_for(2000)
    assert desk.log.end == 0


def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    log = MemoryLog()
    log.read_error = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "broken")
    desk = Desk(log)
    assert desk.shard.state is ShardState.FAILED
    log.read_error = None
    desk.clock.run_for(200)
    assert desk.put("a", 1).value == 1


def test_a_leadership_that_ends_while_the_log_is_read_is_no_error_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    log.read_error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another node leads it")
    Desk(log)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_unloading_refuses_waiting_requests_and_new_ones() -> None:
    desk = Desk()
    desk.log.holding = True
    waiting = desk.put("a", 1)
    desk.shard.unload()
    assert code_of(waiting) is ErrorCode.NOT_COORDINATOR
    with pytest.raises(ApiError) as refused:
        desk.put("b", 1)
    assert refused.value.code is ErrorCode.NOT_COORDINATOR
    desk.log.release()
    assert desk.shard.state is ShardState.UNLOADED


def test_an_answer_that_asks_for_more_gets_it_after_those_before_it() -> None:
    desk = Desk()
    order: list[str] = []
    desk.log.holding = True

    def again(_code: ErrorCode) -> None:
        order.append("written")
        desk.put("c", 3).when_done(lambda _: order.append("c"))

    desk.run(lambda _: CoordinatorResult(1, [note("a", 1)], when_written=again)).when_done(lambda _: order.append("a"))
    desk.get("a").when_done(lambda _: order.append("seen"))
    desk.log.holding = False
    desk.log.release()
    assert sorted(order) == ["a", "c", "seen", "written"]
    assert order.index("seen") < order.index("c")


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 99)),
            st.tuples(st.just("release"), st.booleans(), st.booleans()),
            st.tuples(st.just("wait"), st.sampled_from([1, 200, WRITE_TIMEOUT_MS]), st.just(0)),
        ),
        max_size=40,
    )
)
@settings(max_examples=300, deadline=None)
def test_acknowledged_records_are_in_the_log_through_all_faults_of_appends(
    steps: list[tuple[str, object, object]],
) -> None:
    """Appends are lost, late, refused, or carried out without a response: acknowledged operations stay, in order."""
    desk = Desk()
    desk.log.holding = True
    acknowledged: list[tuple[str, int]] = []

    def put(name: str, number: int) -> None:
        try:
            answer = desk.run(lambda _: CoordinatorResult(number, [note(name, number)], can_wait=number % 2 == 0))
        except ApiError:
            return
        answer.when_done(lambda got: None if isinstance(got, ApiError) else acknowledged.append((name, number)))

    for kind, first, second in steps:
        if kind == "put":
            assert isinstance(first, str)
            assert isinstance(second, int)
            put(first, second)
        elif kind == "release" and desk.log.held:
            refusal = ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "") if second and first else None
            desk.log.release(answered=bool(first), refusal=refusal)
        elif kind == "wait":
            assert isinstance(first, int)
            desk.clock.run_for(first)
    written = [entry for batch in desk.log.batches for entry in _entries(batch)]
    remaining = iter(written)
    assert all(entry in remaining for entry in acknowledged), "acknowledged and not in the log, or in another order"


def _entries(batch: bytes) -> list[tuple[str, int]]:
    from quire.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
    from quire.protocol.records import read_records
    from tests.coordinators.runtime.notebook import Notebook

    entries = []
    for record in read_records(batch):
        decoded = Notebook.record_types.decode(record.key, record.value)
        assert isinstance(decoded.key, TransactionLogKey)
        assert isinstance(decoded.value, TransactionLogValue)
        entries.append((decoded.key.transactional_id, decoded.value.producer_id))
    return entries


def test_a_refusal_keeps_nothing_of_the_requests_that_were_refused_before() -> None:
    desk = Desk()
    desk.shard.unload()
    refusals = []
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            desk.get("a")
        refusals.append(refused.value)
    assert refusals[0] is not refusals[1]
    assert depth_of(refusals[1]) == depth_of(refusals[0])


def depth_of(error: ApiError) -> int:
    depth, traceback = 0, error.__traceback__
    while traceback is not None:
        depth, traceback = depth + 1, traceback.tb_next
    return depth
