"""LeaveGroup, API 13: versions 0 to 5, flexible from 4. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message):
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Message):
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")
