"""The messages between replicas as Kafka's requests and responses, one file per API.

The state machine knows nothing of what a message has on the wire besides: the cluster's id, lists of exactly one topic,
addresses. Each file has four functions, two for each side of a connection:

    request(...)   a message of the machine -> the request to another replica
    read(...)      a request of another replica -> the message; ApiError if it is not about the metadata log
    response(...)  the machine's answer -> the response
    answer(...)    the response of another replica -> the answer; ApiError if it carries none
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.replicas import ReplicaKey

T = TypeVar("T")

NO_VOTER = ReplicaKey(-1)


class LeaderEndpoint(NamedTuple):
    """Where the leader of an epoch listens for other replicas."""

    node_id: int
    host: str
    port: int


def the_only(items: Sequence[T], what: str) -> T:
    """The one item of a list that must have one: requests between replicas are about one partition."""
    if len(items) != 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a request between controllers names one {what}, not {len(items)}")
    return items[0]


def check_partition(is_metadata_topic: bool, partition: int, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
    if not is_metadata_topic or partition != 0:
        raise ApiError(code, "controllers accept this request only for partition 0 of the metadata log")


def named_voter(voter_id: int, directory_id: bytes) -> ReplicaKey | None:
    """The voter that a request is meant for; None if the request names none, as before KIP-853."""
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


def check_node_id(node_id: int) -> None:
    """A leader or a candidate is a node."""
    if node_id < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{node_id} is not the id of a node")


def optional_id(leader_id: int) -> int | None:
    return None if leader_id < 0 else leader_id


def wire_id(leader_id: int | None) -> int:
    return -1 if leader_id is None else leader_id
