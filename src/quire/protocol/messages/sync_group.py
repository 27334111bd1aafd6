"""SyncGroup, API 14: versions 0 to 5, flexible from 4. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, binary, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    member_id: str = string("0+")
    assignment: bytes = binary("0+")


class SyncGroupRequest(Message):
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


class SyncGroupResponse(Message):
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary("0+")
