"""The offsets of a shard: requests, records, expiration and deleted topics."""

from collections.abc import Callable, Sequence

from quire.coordinators.group.group import Groups
from quire.coordinators.group.offsets.commit import CommitRequests
from quire.coordinators.group.offsets.committed import NO_TOPIC_ID
from quire.coordinators.group.offsets.delete import delete_all_step, delete_offsets
from quire.coordinators.group.offsets.deleted_topics import DeletedTopics
from quire.coordinators.group.offsets.expiry import OffsetExpiry
from quire.coordinators.group.offsets.fetch import fetch_offsets
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.group.offsets.tombstones import TombstoneStep
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import Origin
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.messages.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from quire.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from quire.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from quire.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from quire.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


class Offsets:
    """`add_group` registers a group that has only offsets."""

    __slots__ = ("_add_group", "_deleted_topics", "_environment", "_expiry", "_groups", "_requests", "_store")

    def __init__(self, groups: Groups, environment: MachineEnvironment, add_group: Callable[[str], object]) -> None:
        self._groups = groups
        self._environment = environment
        self._add_group = add_group
        self._store = OffsetStore()
        self._requests = CommitRequests(groups, environment)
        self._expiry = OffsetExpiry(self._store, groups, environment)
        self._deleted_topics = DeletedTopics(self._store, environment)

    # --- Requests

    def commit(
        self, request: OffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[OffsetCommitResponse]:
        return self._requests.commit(request, caller, now_ms)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        return self._requests.commit_in_transaction(request, caller, now_ms)

    def fetch(
        self, request: OffsetFetchRequestGroup, caller: Caller, *, require_stable: bool
    ) -> CoordinatorResult[OffsetFetchResponseGroup]:
        return CoordinatorResult(
            fetch_offsets(
                self._store,
                self._groups,
                self._environment.image(),
                request,
                require_stable=require_stable,
                api_version=caller.api_version,
            )
        )

    def is_in_transaction(self, producer_id: int) -> bool:
        return self._store.has_pending_of(producer_id)

    def delete(self, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
        return delete_offsets(self._store, self._groups, self._environment.image(), request)

    def deletion(self, group_id: str) -> TombstoneStep:
        """The next step of the deletion of all offsets of a group."""
        return delete_all_step(self._store, group_id, self._environment.max_batch_bytes())

    # --- Records

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        origin: Origin,
    ) -> None:
        self._store.replay(key, value, origin)
        if value is not None:
            self._deleted_topics.remember(
                key.topic, value.topic_id if isinstance(value, OffsetCommitValue) else NO_TOPIC_ID
            )
            if key.group not in self._groups:
                self._add_group(key.group)

    def replay_end(self, producer_id: int, *, committed: bool) -> None:
        self._store.replay_end(producer_id, committed=committed)
        self._deleted_topics.continue_deletion()

    # --- Timers and metadata

    def loaded(self) -> None:
        for group_id in self._store.group_ids():
            # The tombstone of the group may be later in the log than its offsets.
            if group_id not in self._groups:
                self._add_group(group_id)
        self._deleted_topics.check_all()
        self._expiry.start()

    def metadata_changed(self, topics: Sequence[str]) -> None:
        self._deleted_topics.check_topics(topics)
