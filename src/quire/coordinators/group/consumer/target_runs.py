"""Computes large targets in turns, between which the node serves other requests.

A run starts from the current group, computes the target of its group epoch, and writes it in portions of members. The
record with the epoch is the last one, so the target takes effect when all of it is written. Until then the group uses
its previous target. Members may join and leave between turns: members that left get nothing, and members that joined
wait for the next target, which is due as soon as this one is written. A run is cancelled if the group's targets are no
longer those that it started from. Then the next heartbeat starts another run.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.target import target_records
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Timers
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode

ASK_AGAIN_MS = 250
"""The heartbeat interval of members that wait for a target that is being computed."""

_WORK_OF_WRITING = 3
"""Per partition, in the units of `Pace`."""

ComputeTarget = Callable[[ConsumerGroup], Turns[Mapping[str, Assignment]]]


class _Run(NamedTuple):
    group: ConsumerGroup
    epoch: int
    assignment_epoch: int
    member_ids: frozenset[str]
    turns: Iterator[list[StateRecord]]

    @property
    def is_current(self) -> bool:
        """Whether the targets are those that the run started from, except those of members that left."""
        return self.group.assignment_epoch == self.assignment_epoch and self.group.targets.keys() <= self.member_ids


class TargetRuns:
    """At most one run per group."""

    __slots__ = ("_compute", "_groups", "_is_due", "_runs", "_timers", "_too_large")

    def __init__(
        self,
        groups: Groups,
        timers: Timers,
        compute: ComputeTarget,
        is_due: Callable[[ConsumerGroup, int], bool],
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._compute = compute
        self._is_due = is_due
        self._runs: dict[str, _Run | None] = {}
        """None before the first turn."""
        self._too_large: dict[str, int] = {}
        """Group epochs whose target is too large for the log. Another run would fail in the same way."""

    def is_running(self, group_id: str) -> bool:
        return group_id in self._runs

    def is_too_large(self, group: ConsumerGroup) -> bool:
        return self._too_large.get(group.group_id) == group.group_epoch

    def start(self, group_id: str) -> None:
        """Starts after the current operation, so that the run sees its changes."""
        self._runs[group_id] = None
        self._take_turn_soon(group_id)

    def forget(self, group_id: str) -> None:
        """The group was deleted, or is no longer a consumer group."""
        self._too_large.pop(group_id, None)
        self._runs.pop(group_id, None)
        self._timers.cancel(("target", group_id))

    def _take_turn_soon(self, group_id: str) -> None:
        self._timers.schedule(("target", group_id), 0, partial(self._take_turn, group_id))

    def _take_turn(self, group_id: str, now_ms: int) -> CoordinatorResult[None]:
        run = self._runs.pop(group_id, None) or self._begin(group_id, now_ms)
        if run is None or self._groups.get(group_id) is not run.group or not run.is_current:
            return CoordinatorResult(None)
        written = next(run.turns, None)
        if written is None:
            # In an operation of its own, for the time at which the target is complete.
            return CoordinatorResult(None, [records.target_metadata(group_id, run.epoch, now_ms)])
        self._runs[group_id] = run
        self._take_turn_soon(group_id)
        return (
            CoordinatorResult(None, written, when_written=partial(self._targets_written, run))
            if written
            else CoordinatorResult(None)
        )

    def _begin(self, group_id: str, now_ms: int) -> _Run | None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not self._is_due(group, now_ms):
            return None
        turns = _records_in_turns(group, self._compute(group))
        return _Run(group, group.group_epoch, group.assignment_epoch, frozenset(group.members), turns)

    def _targets_written(self, run: _Run, code: ErrorCode) -> None:
        if code is ErrorCode.MESSAGE_TOO_LARGE:
            self.forget(run.group.group_id)
            self._too_large[run.group.group_id] = run.epoch


def _records_in_turns(group: ConsumerGroup, turns: Turns[Mapping[str, Assignment]]) -> Iterator[list[StateRecord]]:
    """The records of each turn. Turns that compute the target have none."""
    targets: Mapping[str, Assignment] = {}

    def compute() -> Turns[None]:
        nonlocal targets
        targets = yield from turns

    for _ in compute():
        yield []
    pace = Pace()
    of_turn: list[str] = []
    for member_id in sorted(targets):
        of_turn.append(member_id)
        if pace.is_turn_over(_WORK_OF_WRITING * sum(map(len, targets[member_id].values()))):
            yield target_records(group, targets, of_turn)
            of_turn = []
    yield target_records(group, targets, of_turn)
