"""IncrementalAlterConfigs: sets, deletes, appends to or subtracts from single settings of a topic, broker or group."""

from typing import TYPE_CHECKING

from quire.node.config_resources import check_may_alter
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError
from quire.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: IncrementalAlterConfigsRequest
) -> Work[IncrementalAlterConfigsResponse]:
    for resource in request.resources:
        check_may_alter(node.authorizer, context, resource.resource_type, resource.resource_name)
    response: IncrementalAlterConfigsResponse = yield node.controller.incremental_alter_configs(
        request, node.clock.now_ms()
    )
    return response


def refuse(request: IncrementalAlterConfigsRequest, error: ApiError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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
