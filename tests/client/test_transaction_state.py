import pytest

from quire.client.errors import ClientError
from quire.client.transaction_state import TRANSITIONS, Event, State, TransactionState

CALLS = (Event.INITIALIZED, Event.BEGIN, Event.COMMIT, Event.ABORT)


def after(*events: Event) -> TransactionState:
    state = TransactionState()
    for event in events:
        state.apply(event, RuntimeError(event.name) if event in (Event.FAILED, Event.FENCED) else None)
    return state


OPEN = (Event.INITIALIZED, Event.BEGIN)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), State.UNINITIALIZED),
        ((Event.INITIALIZED,), State.READY),
        (OPEN, State.OPEN),
        ((*OPEN, Event.COMMIT, Event.ENDED), State.READY),
        ((*OPEN, Event.ABORT, Event.ENDED), State.READY),
        ((*OPEN, Event.FAILED), State.BROKEN),
        ((*OPEN, Event.COMMIT, Event.FAILED), State.BROKEN),
        ((*OPEN, Event.FAILED, Event.ABORT, Event.FAILED, Event.ENDED), State.READY),
        ((*OPEN, Event.COMMIT, Event.FENCED, Event.FAILED), State.DEAD),
    ],
)
def test_events_lead_from_state_to_state(events: tuple[Event, ...], expected: State) -> None:
    assert after(*events).now is expected


def test_every_state_has_a_row_and_every_state_can_die() -> None:
    assert set(TRANSITIONS) == set(State)
    assert all(row[Event.FENCED] is State.DEAD for row in TRANSITIONS.values())


@pytest.mark.parametrize(
    ("events", "allowed"),
    [
        ((), (Event.INITIALIZED,)),
        ((Event.INITIALIZED,), (Event.INITIALIZED, Event.BEGIN)),
        (OPEN, (Event.COMMIT, Event.ABORT)),
        ((*OPEN, Event.COMMIT), (Event.COMMIT,)),
        ((*OPEN, Event.ABORT), (Event.ABORT,)),
        ((*OPEN, Event.FAILED), (Event.ABORT,)),
        ((*OPEN, Event.FENCED), ()),
    ],
)
def test_what_a_caller_may_do_depends_on_the_state(events: tuple[Event, ...], allowed: tuple[Event, ...]) -> None:
    for call in CALLS:
        state = after(*events)
        if call in allowed:
            state.check(call)
        else:
            with pytest.raises((ClientError, RuntimeError)):
                state.apply(call)
            assert state.now is after(*events).now


def test_a_broken_transaction_says_what_broke_it_until_it_is_aborted() -> None:
    state = after(*OPEN)
    first = RuntimeError("first")
    state.apply(Event.FAILED, first)
    state.apply(Event.FAILED, RuntimeError("second"))
    with pytest.raises(RuntimeError) as caught:
        state.apply(Event.COMMIT)
    assert caught.value is first
    state.apply(Event.ABORT)
    state.apply(Event.ENDED)
    assert state.error is None
    state.apply(Event.BEGIN)


def test_being_fenced_is_told_rather_than_what_broke_before() -> None:
    state = after(*OPEN, Event.FAILED, Event.ABORT, Event.FENCED)
    with pytest.raises(RuntimeError, match="FENCED"):
        state.apply(Event.BEGIN)


def test_a_call_out_of_turn_says_what_to_do_first() -> None:
    with pytest.raises(ClientError, match="init_transactions"):
        after().apply(Event.BEGIN)
    with pytest.raises(ClientError, match="begin one first"):
        after(Event.INITIALIZED).apply(Event.COMMIT)
    with pytest.raises(ClientError, match="commit or abort it first"):
        after(*OPEN).apply(Event.BEGIN)
