"""Deletes offsets that have not been used for `offsets.retention.minutes`, and groups without members and offsets.

An offset is in use while a member of the group subscribes to the topic. The retention of an empty group's offsets
starts when the group becomes empty (KIP-211). Old clients can set an expiration time in the commit instead. An offset
that an open transaction may change is kept. A timer checks every `offsets.retention.check.interval.ms`, in steps.
"""

from collections.abc import Mapping

from quire.coordinators.group.group import Group, Groups
from quire.coordinators.group.offsets.committed import NO_TIMESTAMP, CommittedOffset
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.group.offsets.tombstones import TombstoneStep
from quire.coordinators.runtime.machine import MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode

MAX_CHECKED = 10_000
"""Offsets in one step, which takes some milliseconds."""

_MINUTE_MS = 60_000
_TIMER = "expire offsets"


class OffsetExpiry:
    __slots__ = ("_environment", "_groups", "_left", "_store")

    def __init__(self, store: OffsetStore, groups: Groups, environment: MachineEnvironment) -> None:
        self._store = store
        self._groups = groups
        self._environment = environment
        self._left: list[str] = []
        """Groups that are left to check, the next one last."""

    def start(self) -> None:
        self._environment.timers.schedule(
            _TIMER, self._environment.config.get_int("offsets.retention.check.interval.ms"), self._step
        )

    def _step(self, now_ms: int) -> CoordinatorResult[None]:
        # First, so that the timer runs again even if this step fails.
        self.start()
        if not self._left:
            self._left = list(reversed(self._groups))
        step = TombstoneStep(self._environment.max_batch_bytes())
        checked = 0
        while self._left and checked < MAX_CHECKED and not step.is_full:
            group = self._groups.get(self._left[-1])
            if group is not None:
                checked += 1 + sum(map(len, self._store.committed.topics_of(group.group_id).values()))
                self._expire(group, now_ms, step)
            if not step.is_full:
                self._left.pop()
        if self._left:
            self._environment.timers.schedule(_TIMER, 0, self._step)

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.MESSAGE_TOO_LARGE:
                self.start()  # the log would refuse the next step, too

        return CoordinatorResult(None, step.records, when_written=written)

    def _expire(self, group: Group, now_ms: int, step: TombstoneStep) -> None:
        nothing_left = not self._store.has_pending(group.group_id)
        for topic, offsets in self._store.committed.topics_of(group.group_id).items():
            nothing_left = self._expire_topic(group, topic, offsets, now_ms, step) and nothing_left
        if nothing_left and group.is_empty:
            step.add_group(group.group_id, group.tombstones())

    def _expire_topic(
        self, group: Group, topic: str, offsets: Mapping[int, CommittedOffset], now_ms: int, step: TombstoneStep
    ) -> bool:
        """Whether all offsets of the topic have expired."""
        if group.is_subscribed_to(topic):
            return False
        all_expired = True
        for partition, offset in offsets.items():
            if step.is_full:
                return False
            if self._is_expired(group, offset, now_ms) and not self._store.is_pending(group.group_id, topic, partition):
                step.add(group.group_id, topic, partition)
            else:
                all_expired = False
        return all_expired

    def _is_expired(self, group: Group, offset: CommittedOffset, now_ms: int) -> bool:
        unused_since_ms = group.offsets_unused_since(offset.commit_timestamp_ms)
        if unused_since_ms is None:
            return False
        if offset.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= offset.expire_timestamp_ms
        retention_ms = self._environment.config.get_int("offsets.retention.minutes") * _MINUTE_MS
        return now_ms - unused_since_ms >= retention_ms
