"""Version and voters at each offset of a log."""

from quire.raft.control_state import Control, ControlHistory, ControlState
from quire.raft.replicas import VoterSet

ONE, TWO, THREE = (VoterSet.of_ids(range(1, count + 1)) for count in (1, 2, 3))


def history() -> ControlHistory:
    """Voters at offset 0, another at 10, a third at 20; other batches in between."""
    history = ControlHistory()
    history.append(0, Control(1, ONE))
    history.append(5, None)
    history.append(10, Control(voters=TWO))
    history.append(15, Control())
    history.append(20, Control(voters=THREE))
    return history


def test_the_newest_voters_in_the_log_count() -> None:
    assert history().latest == ControlState(1, THREE)
    assert (history().voters, history().kraft_version, history().latest_offset) == (THREE, 1, 20)


def test_the_state_at_an_offset_is_what_the_records_below_it_say() -> None:
    assert history().at(0) == ControlState()
    assert history().at(10) == ControlState(1, ONE)
    assert history().at(11) == history().at(20) == ControlState(1, TWO)
    assert history().at(99) == ControlState(1, THREE)


def test_truncating_goes_back_to_earlier_voters() -> None:
    log = history()
    log.truncate(20)
    assert log.voters == TWO
    log.truncate(0)
    assert log.latest == ControlState()


def test_a_snapshot_in_place_of_the_log_brings_its_own_state() -> None:
    log = history()
    log.restart_at(ControlState(1, TWO))
    assert (log.voters, log.latest_offset) == (TWO, -1)


def test_a_log_that_starts_later_keeps_the_state_it_starts_with() -> None:
    log = history()
    log.forget_before(15)
    assert log.at(15) == ControlState(1, TWO)
    assert log.since(15) == [ControlState(1, TWO), ControlState(1, THREE)]
    log.truncate(20)
    assert log.voters == TWO


def test_the_voters_of_the_settings_count_until_the_log_names_some() -> None:
    log = ControlHistory(static_voters=THREE)
    assert log.voters == THREE
    log.append(0, Control(1, TWO))
    assert log.voters == TWO
