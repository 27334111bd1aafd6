"""IncrementalAlterConfigs: sets, deletes, appends to or subtracts from single settings of a topic, broker or group.

Versions on broker and controller listeners:
    0  the first version (KIP-339)
    1  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.config_resources import check_may_alter
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(
    node: "Node", context: Context, request: IncrementalAlterConfigsRequest
) -> Work[IncrementalAlterConfigsResponse]:
    for resource in request.resources:
        check_may_alter(node.authorizer, context, resource.resource_type, resource.resource_name)
    response: IncrementalAlterConfigsResponse = yield node.to_controller.incremental_alter_configs(request, context)
    return response
