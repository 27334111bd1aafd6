"""DeleteGroups, API 42: versions 0 to 2, flexible from 2. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message):
    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    groups_names: list[str] = array(string, "0+")


class DeletableGroupResult(Struct):
    group_id: str = string("0+")
    error_code: int = int16("0+")


class DeleteGroupsResponse(Message):
    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
