"""AlterConfigs: replaces all dynamic settings of a topic or broker by the ones given (older clients)."""

from typing import TYPE_CHECKING

from quire.node.config_resources import check_may_alter
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError
from quire.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: AlterConfigsRequest) -> Work[AlterConfigsResponse]:
    for resource in request.resources:
        check_may_alter(node.authorizer, context, resource.resource_type, resource.resource_name)
    response: AlterConfigsResponse = yield node.controller.alter_configs(request, node.clock.now_ms())
    return response


def refuse(request: AlterConfigsRequest, error: ApiError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )
