"""AlterConfigs: replaces all dynamic settings of a resource. Newer clients use IncrementalAlterConfigs instead.

Versions on broker and controller listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.config_resources import check_may_alter
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: AlterConfigsRequest) -> Work[AlterConfigsResponse]:
    for resource in request.resources:
        check_may_alter(node.authorizer, context, resource.resource_type, resource.resource_name)
    response: AlterConfigsResponse = yield node.to_controller.alter_configs(request, context)
    return response
