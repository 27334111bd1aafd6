"""ControllerRegistration: a controller reports its addresses and the feature levels that it supports (KIP-919).

Only nodes send it, to each active controller until their registration is in the metadata log.

Versions on controller listeners:
    0  the first version (KIP-919)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(
    node: "Node", context: Context, request: ControllerRegistrationRequest
) -> Pending[ControllerRegistrationResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.register_controller(request, context)
