"""DescribeGroups: the state and the members of classic groups.

Versions on broker listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  authorized operations (KIP-430)
    4  group.instance.id of static members (KIP-345)
    5  flexible encoding
    6  an unknown group gets GROUP_ID_NOT_FOUND; error messages (KIP-1043)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.group_requests import caller_of, run_in_group
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node

FIRST_VERSION_WITH_MESSAGES = 6


def handle(node: "Node", context: Context, request: DescribeGroupsRequest) -> Work[DescribeGroupsResponse]:
    groups = yield from entries(
        request.groups,
        lambda group_id: _describe(node, context, request, group_id),
        lambda group_id, error: _refused(group_id, error, context.api_version),
        lambda groups: DescribeGroupsResponse(groups=groups),
        context.api_version,
    )
    return DescribeGroupsResponse(groups=groups)


def refuse(request: DescribeGroupsRequest, error: ApiError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_refused(group_id, error, 0) for group_id in request.groups])


def _describe(
    node: "Node", context: Context, request: DescribeGroupsRequest, group_id: str
) -> DescribedGroup | Pending[DescribedGroup]:
    caller = caller_of(context)
    try:
        answer = run_in_group(
            node,
            context,
            group_id,
            lambda machine, now_ms: machine.describe_group(group_id, caller, now_ms),
            AclOperation.DESCRIBE,
        )
    except ApiError as error:
        return _refused(group_id, error, context.api_version)

    def described(group: DescribedGroup | ApiError) -> DescribedGroup:
        if isinstance(group, ApiError):
            return _refused(group_id, group, context.api_version)
        if request.include_authorized_operations:
            group.authorized_operations = node.authorizer.operations(context, Resource.GROUP, group_id)
        return group

    return answer.then(described)


def _refused(group_id: str, error: ApiError, api_version: int) -> DescribedGroup:
    message = error.message or None if api_version >= FIRST_VERSION_WITH_MESSAGES else None
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=message)
