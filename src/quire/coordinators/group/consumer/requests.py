"""Checks of ConsumerGroupHeartbeat requests that do not depend on the group."""

from collections.abc import Sequence

from quire.coordinators.group.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATICALLY_EPOCH
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_ID_BY_CLIENT_VERSION = 1
"""Since this version clients generate their member ids."""


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> None:
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_BY_CLIENT_VERSION or epoch > 0 or epoch == LEAVING_EPOCH:
        _check_text(request.member_id, "MemberId can't be empty.")
    _check_text(request.group_id, "GroupId can't be empty.")
    _check_text(request.instance_id, "InstanceId can't be empty.")
    _check_text(request.rack_id, "RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _check_join(request)
    elif epoch == LEAVING_STATICALLY_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_STATICALLY_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields, as when a member joins and after errors."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_text(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(message)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
