"""Requests to a shard of classic groups, for tests that check more than a transcript contains."""

from typing import Any

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.runtime.machine import Caller
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordinators.group.classic.classic_machine import ClassicShard, classic_shard

GROUP = "g"


def shard_at_once(**settings: str) -> ClassicShard:
    """The initial join phase ends as soon as timers run."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return classic_shard({"group.initial.rebalance.delay.ms": "0", **named})


def group_of(shard: ClassicShard, group_id: str = GROUP) -> ClassicGroup:
    group = shard.machine.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


def join(
    shard: ClassicShard,
    member_id: str = "",
    *,
    version: int = 3,
    instance_id: str | None = None,
    metadata: bytes = b"",
    group_id: str = GROUP,
    client_id: str = "client",
    **fields: Any,
) -> Pending[Any]:
    defaults: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=metadata)],
    }
    request = JoinGroupRequest(
        group_id=group_id, member_id=member_id, group_instance_id=instance_id, **{**defaults, **fields}
    )
    return shard.run(lambda now_ms: shard.machine.classic.join(request, Caller(client_id, "host", version), now_ms))


def sync(
    shard: ClassicShard, member_id: str, generation: int, assignments: dict[str, bytes] | None = None
) -> Pending[Any]:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=owner, assignment=assignment)
            for owner, assignment in (assignments or {}).items()
        ],
    )
    return shard.run(lambda now_ms: shard.machine.classic.sync(request, Caller("client", "host", 4), now_ms))


def beat(shard: ClassicShard, member_id: str, generation: int) -> Pending[Any]:
    request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
    return shard.run(lambda now_ms: shard.machine.classic.heartbeat(request, Caller("client", "host", 4), now_ms))


def stable(shard: ClassicShard, members: int = 1, **options: Any) -> list[str]:
    """Creates a stable group of this many members in generation 1; the leader's id comes first."""
    answers = [join(shard, **options) for _ in range(members)]
    shard.wait(0)
    ids = [answer.value.member_id for answer in answers]
    assert sync(shard, ids[0], 1, {id_: b"of %s" % id_.encode() for id_ in ids}).value.error_code == ErrorCode.NONE
    for id_ in ids[1:]:
        assert sync(shard, id_, 1).value.error_code == ErrorCode.NONE
    return ids


def refusal(answer: Pending[Any]) -> ErrorCode:
    assert isinstance(answer.value, ApiError), answer.value
    return answer.value.code
