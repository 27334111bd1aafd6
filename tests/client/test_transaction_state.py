import pytest

from quire.client.errors import ClientError
from quire.client.transaction_state import TRANSITIONS, TransactionEvent, TransactionState, TransactionStateMachine

CALLS = (TransactionEvent.INITIALIZED, TransactionEvent.BEGIN, TransactionEvent.COMMIT, TransactionEvent.ABORT)


def after(*events: TransactionEvent) -> TransactionStateMachine:
    state = TransactionStateMachine()
    for event in events:
        state.apply(
            event, RuntimeError(event.name) if event in (TransactionEvent.FAILED, TransactionEvent.FENCED) else None
        )
    return state


OPEN = (TransactionEvent.INITIALIZED, TransactionEvent.BEGIN)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), TransactionState.UNINITIALIZED),
        ((TransactionEvent.INITIALIZED,), TransactionState.READY),
        (OPEN, TransactionState.OPEN),
        ((*OPEN, TransactionEvent.COMMIT, TransactionEvent.ENDED), TransactionState.READY),
        ((*OPEN, TransactionEvent.ABORT, TransactionEvent.ENDED), TransactionState.READY),
        ((*OPEN, TransactionEvent.FAILED), TransactionState.BROKEN),
        ((*OPEN, TransactionEvent.COMMIT, TransactionEvent.FAILED), TransactionState.BROKEN),
        (
            (*OPEN, TransactionEvent.FAILED, TransactionEvent.ABORT, TransactionEvent.FAILED, TransactionEvent.ENDED),
            TransactionState.READY,
        ),
        ((*OPEN, TransactionEvent.COMMIT, TransactionEvent.FENCED, TransactionEvent.FAILED), TransactionState.DEAD),
    ],
)
def test_events_lead_from_state_to_state(events: tuple[TransactionEvent, ...], expected: TransactionState) -> None:
    assert after(*events).now is expected


def test_every_state_has_a_row_and_every_state_can_die() -> None:
    assert set(TRANSITIONS) == set(TransactionState)
    assert all(row[TransactionEvent.FENCED] is TransactionState.DEAD for row in TRANSITIONS.values())


@pytest.mark.parametrize(
    ("events", "allowed"),
    [
        ((), (TransactionEvent.INITIALIZED,)),
        ((TransactionEvent.INITIALIZED,), (TransactionEvent.INITIALIZED, TransactionEvent.BEGIN)),
        (OPEN, (TransactionEvent.COMMIT, TransactionEvent.ABORT)),
        ((*OPEN, TransactionEvent.COMMIT), (TransactionEvent.COMMIT,)),
        ((*OPEN, TransactionEvent.ABORT), (TransactionEvent.ABORT,)),
        ((*OPEN, TransactionEvent.FAILED), (TransactionEvent.ABORT,)),
        ((*OPEN, TransactionEvent.FENCED), ()),
    ],
)
def test_the_state_decides_which_calls_are_allowed(
    events: tuple[TransactionEvent, ...], allowed: tuple[TransactionEvent, ...]
) -> None:
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
    state.apply(TransactionEvent.FAILED, first)
    state.apply(TransactionEvent.FAILED, RuntimeError("second"))
    with pytest.raises(RuntimeError) as caught:
        state.apply(TransactionEvent.COMMIT)
    assert caught.value is first
    state.apply(TransactionEvent.ABORT)
    state.apply(TransactionEvent.ENDED)
    assert state.error is None
    state.apply(TransactionEvent.BEGIN)


def test_fencing_is_reported_rather_than_the_earlier_error() -> None:
    state = after(*OPEN, TransactionEvent.FAILED, TransactionEvent.ABORT, TransactionEvent.FENCED)
    with pytest.raises(RuntimeError, match="FENCED"):
        state.apply(TransactionEvent.BEGIN)


def test_a_call_out_of_turn_says_what_to_do_first() -> None:
    with pytest.raises(ClientError, match="init_transactions"):
        after().apply(TransactionEvent.BEGIN)
    with pytest.raises(ClientError, match="begin one first"):
        after(TransactionEvent.INITIALIZED).apply(TransactionEvent.COMMIT)
    with pytest.raises(ClientError, match="commit or abort it first"):
        after(*OPEN).apply(TransactionEvent.BEGIN)
