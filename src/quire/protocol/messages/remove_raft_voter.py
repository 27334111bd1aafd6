"""RemoveRaftVoter, API 81: version 0, flexible. Answered by brokers and controllers."""

from quire.protocol.schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message):
    API_KEY = 81
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    cluster_id: str | None = string("0+", nullable="0+")
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")


class RemoveRaftVoterResponse(Message):
    API_KEY = 81
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
