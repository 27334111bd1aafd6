"""The version of KRaft and the voters: what they are now, and what they were at each offset of the log.

Both are control records, so both belong to offsets: a replica uses the newest voters in its log, committed or not (Raft
4.1, KIP-853), goes back to earlier ones when it truncates, and writes the ones at its end offset into a snapshot. The
core owns the history and changes it together with `LogSummary`; the store fills it when it opens the log.
"""

from bisect import bisect_left
from typing import NamedTuple

from quire.raft.replicas import VoterSet

NO_VOTERS = VoterSet(())


class Control(NamedTuple):
    """What one control batch changes; None where it changes nothing. As a payload it is a batch of these records."""

    kraft_version: int | None = None
    voters: VoterSet | None = None

    @property
    def record_count(self) -> int:
        return (self.kraft_version is not None) + (self.voters is not None)


class ControlState(NamedTuple):
    """What all control records up to an offset add up to. A static quorum (version 0) has no voters in its log."""

    kraft_version: int = 0
    voters: VoterSet | None = None

    def after(self, control: Control) -> "ControlState":
        return ControlState(
            self.kraft_version if control.kraft_version is None else control.kraft_version,
            self.voters if control.voters is None else control.voters,
        )


INITIAL = ControlState()


class ControlHistory:
    """The control state at every offset from the start of the log on."""

    __slots__ = ("_base_offsets", "_states", "static_voters")

    def __init__(self, start: ControlState = INITIAL, static_voters: VoterSet = NO_VOTERS) -> None:
        self.static_voters = static_voters
        """The voters of `controller.quorum.voters`, which count until the log names some."""
        self._base_offsets = [-1]
        """Where the batch starts that led to each state; -1 for the state at the start of the log."""
        self._states = [start]

    @property
    def latest(self) -> ControlState:
        return self._states[-1]

    @property
    def latest_offset(self) -> int:
        """Where the batch starts that made the latest state; -1 if the log has none."""
        return self._base_offsets[-1]

    @property
    def voters(self) -> VoterSet:
        return self.voters_of(self.latest)

    @property
    def kraft_version(self) -> int:
        return self.latest.kraft_version

    def voters_of(self, state: ControlState) -> VoterSet:
        return self.static_voters if state.voters is None else state.voters

    def at(self, offset: int) -> ControlState:
        """The state that all records below `offset` add up to."""
        return self._states[max(bisect_left(self._base_offsets, offset) - 1, 0)]

    def since(self, offset: int) -> list[ControlState]:
        """The state at `offset` and all later ones."""
        return self._states[max(bisect_left(self._base_offsets, offset) - 1, 0) :]

    def append(self, base_offset: int, control: Control | None) -> None:
        """A batch was appended at `base_offset`; most have no control records."""
        assert base_offset > self._base_offsets[-1]
        if control is not None and control.record_count:
            self._base_offsets.append(base_offset)
            self._states.append(self.latest.after(control))

    def truncate(self, offset: int) -> None:
        kept = max(bisect_left(self._base_offsets, offset), 1)
        del self._base_offsets[kept:], self._states[kept:]

    def restart_at(self, state: ControlState) -> None:
        """A snapshot with this state replaces the whole log."""
        self._base_offsets = [-1]
        self._states = [state]

    def forget_before(self, offset: int) -> None:
        """The log now starts at `offset`."""
        dropped = bisect_left(self._base_offsets, offset) - 1
        del self._base_offsets[:dropped], self._states[:dropped]
        self._base_offsets[0] = -1
