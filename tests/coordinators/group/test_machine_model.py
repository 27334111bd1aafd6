"""Whatever members of either protocol do with a group, its offset is the last one acknowledged.

The group changes its protocol, loses its members, is deleted and created again; the coordinator replays its
log, whole or compacted. The group decides who may commit. This test checks that an acknowledged commit stays until a
later one, or the deletion of the group, is acknowledged.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordinators.compacted_log import compacted
from tests.coordinators.group.group_shard import GroupShard
from tests.coordinators.group.offsets.offsets_shard import topics

GROUP = "g"
CONSUMERS = ("a", "b")

consumers = st.sampled_from(CONSUMERS)


class GroupModel(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.shard = GroupShard(topics({"t": 1}))
        self.acknowledged: int | None = None
        self.commits = 0
        self.members: dict[str, tuple[str, int]] = {}
        """Clients that believe they are members: the id, and the generation or epoch. At most one of them is
        classic."""

    # --- Members

    @rule()
    def join_or_leave_as_classic(self) -> None:
        if "classic" in self.members:
            member, _ = self.members.pop("classic")
            self.shard.ask("leave_group", LeaveGroupRequest(group_id=GROUP, member_id=member), 2)
            return
        joining = self.shard.join_classic(GROUP, "t")
        self.shard.wait(0)
        if not joining.done or isinstance(joining.value, ApiError) or joining.value.error_code:
            return
        joined = joining.value
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")],
        )
        self.shard.ask("sync_group", request, 3)
        self.members["classic"] = joined.member_id, joined.generation_id

    @rule(name=consumers)
    def join_or_go_on_as_consumer(self, name: str) -> None:
        _, epoch = self.members.get(name, (name, 0))
        answer = self.shard.beat_as_consumer(GROUP, name, epoch, "t")
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            self.members[name] = name, answer.member_epoch
        else:
            self.members.pop(name, None)

    @rule(name=consumers)
    def leave_as_consumer(self, name: str) -> None:
        self.shard.beat_as_consumer(GROUP, name, -1)
        self.members.pop(name, None)

    @rule(seconds=st.integers(0, 60))
    def wait(self, seconds: int) -> None:
        """Some sessions expire; offsets are kept longer."""
        self.shard.wait(seconds * 1000)

    # --- Offsets

    @rule(number=st.integers(0, 2))
    def commit(self, number: int) -> None:
        """Commits as a client that believes it is a member, or as a client that is not one."""
        known = [("", -1), *self.members.values()]
        member, generation = known[-1 - number % len(known)]
        self.commits += 1
        if self.shard.commit_offset(GROUP, self.commits, member=member, generation=generation) == ErrorCode.NONE:
            self.acknowledged = self.commits

    @rule(number=st.integers(0, 2))
    def commit_too(self, number: int) -> None:
        """So that it happens more often than the rest."""
        self.commit(number)

    @rule()
    def delete_group(self) -> None:
        if self.shard.delete(GROUP) == ErrorCode.NONE:
            self.acknowledged = None

    # --- The coordinator

    @rule(share=st.floats(0, 1), keep_tombstones=st.booleans())
    def compact_and_reload(self, share: float, keep_tombstones: bool) -> None:
        before = self.shard.listed()
        self.shard.log = compacted(self.shard.log, share, keep_tombstones=keep_tombstones)
        self.shard.reload()
        if self.acknowledged is not None:
            assert self.shard.listed()[GROUP][1] == before[GROUP][1], "it is of the same protocol as before"

    @invariant()
    def the_offset_is_what_was_acknowledged_last(self) -> None:
        assert self.shard.offsets(GROUP) == ({} if self.acknowledged is None else {"t": self.acknowledged})
        assert self.acknowledged is None or GROUP in self.shard.listed()


TestGroupModel = GroupModel.TestCase
TestGroupModel.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
