"""Which state may follow which."""

from quire.coordinators.transaction.transaction_state import (
    AT_REST,
    COMPLETE,
    IN_THE_LOG,
    MAY_FOLLOW,
    NAMES,
    PREPARED,
    TransactionState,
)


def followers(state: TransactionState) -> set[TransactionState]:
    return {following for following, earlier in MAY_FOLLOW.items() if state in earlier}


def test_every_state_has_a_name_and_a_row() -> None:
    assert set(NAMES) == set(MAY_FOLLOW) == set(TransactionState)
    assert len(set(NAMES.values())) == len(TransactionState)


def test_a_decided_transaction_can_only_be_completed_as_decided() -> None:
    for state in PREPARED:
        assert followers(state) == {COMPLETE[state]}


def test_only_an_open_transaction_can_be_committed() -> None:
    assert MAY_FOLLOW[TransactionState.PREPARE_COMMIT] == {TransactionState.ONGOING}


def test_only_a_completed_transaction_can_begin_again() -> None:
    for state in AT_REST:
        assert TransactionState.ONGOING in followers(state)
    assert not MAY_FOLLOW[TransactionState.ONGOING] & (
        PREPARED | {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
    )


def test_the_dead_stay_dead() -> None:
    assert not followers(TransactionState.DEAD)


def test_a_transaction_that_is_to_be_fenced_can_only_be_aborted() -> None:
    assert followers(TransactionState.PREPARE_EPOCH_FENCE) - {TransactionState.PREPARE_EPOCH_FENCE} == {
        TransactionState.PREPARE_ABORT
    }


def test_states_of_the_moment_are_not_in_the_log() -> None:
    assert set(TransactionState) - set(IN_THE_LOG.values()) == {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
