"""`Channel` of a node: its coordinators send requests to partitions and coordinators, on this node and on others.

A request to this node goes to the handler that also serves clients, with the cluster itself as its principal. A request
to another node goes over a connection (`broker_links.py`).
"""

import logging
from collections.abc import Callable
from importlib import import_module
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from quire.node.broker_links import BrokerLinks
from quire.node.context import CLUSTER, Context
from quire.pending import Pending, completed
from quire.protocol import apis
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.requests")

Handle = Callable[["Node", Context, Any], Any]


class NodeChannel:
    __slots__ = ("_contexts", "_handlers", "_links", "_node")

    def __init__(self, node: "Node", links: BrokerLinks) -> None:
        self._node = node
        self._links = links
        self._handlers: dict[int, Handle] = {}
        self._contexts: dict[int, Context] = {}
        """By version. Everything else is the same for all requests."""

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        if node_id != self._node.node_id:
            return self._links.send(node_id, request, version)
        context = self._contexts.get(version)
        if context is None:
            context = self._contexts[version] = Context("", CLUSTER, f"quire-{node_id}", "", api_version=version)
        try:
            response = self._handler(request)(self._node, context, request)
            if response.__class__ is GeneratorType:
                response = self._node.slices.run(response, may_be_abandoned=False)
        except ApiError as error:
            return completed(error)
        except Exception:
            log.exception("%s v%d of the node itself failed unexpectedly", type(request).__name__, version)
            return completed(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the node failed on its own request"))
        return response if isinstance(response, Pending) else completed(response)

    def _handler(self, request: Message) -> Handle:
        key = request.API_KEY
        assert key is not None
        handle = self._handlers.get(key)
        if handle is None:
            module = import_module(f"quire.node.api.{apis.module_name(apis.API_NAMES[key])}")
            handle = self._handlers[key] = module.handle
        return handle
