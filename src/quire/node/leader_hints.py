"""Where the leaders are that a response names, for clients that then need not ask for metadata (KIP-951)."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from quire.node.context import Context

if TYPE_CHECKING:
    from quire.node.node import Node

E = TypeVar("E")


def endpoints_of(
    node: "Node", context: Context, leader_ids: Iterable[int], make: Callable[[int, str, int, str | None], E]
) -> list[E]:
    """The addresses of these brokers on the client's listener; a broker that is not known there is left out."""
    wanted = set(leader_ids)
    return [
        make(broker.broker_id, host, port, broker.rack)
        for broker, host, port in (node.live_brokers(context.listener) if wanted else ())
        if broker.broker_id in wanted
    ]
