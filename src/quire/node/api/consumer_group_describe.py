"""ConsumerGroupDescribe: the state and the members of consumer groups (KIP-848).

Versions on broker listeners:
    0  the first version (KIP-848)
    1  whether a member uses the classic or the consumer protocol (KIP-1099)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.group_requests import caller_of, run_in_group
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: ConsumerGroupDescribeRequest
) -> Work[ConsumerGroupDescribeResponse]:
    groups = yield from entries(
        request.group_ids,
        lambda group_id: _describe(node, context, request, group_id),
        _refused,
        lambda groups: ConsumerGroupDescribeResponse(groups=groups),
        context.api_version,
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def refuse(request: ConsumerGroupDescribeRequest, error: ApiError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_refused(group_id, error) for group_id in request.group_ids])


def _describe(
    node: "Node", context: Context, request: ConsumerGroupDescribeRequest, group_id: str
) -> DescribedGroup | Pending[DescribedGroup]:
    if not group_id:
        nameless = ApiError(ErrorCode.INVALID_GROUP_ID, "the group id must not be empty")
        return _refused(group_id, nameless)
    caller = caller_of(context)
    try:
        answer = run_in_group(
            node,
            context,
            group_id,
            lambda machine, now_ms: machine.describe_consumer_group(group_id, caller, now_ms),
            AclOperation.DESCRIBE,
        )
    except ApiError as error:
        return _refused(group_id, error)

    def described(group: DescribedGroup | ApiError) -> DescribedGroup:
        if isinstance(group, ApiError):
            return _refused(group_id, group)
        if request.include_authorized_operations:
            group.authorized_operations = node.authorizer.operations(context, Resource.GROUP, group_id)
        return group

    return answer.then(described)


def _refused(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
