"""An authorizer that denies what a test names, to test how a handler refuses."""

from quire.node.authorizer import AclOperation, Authorizer, Resource
from quire.node.context import Context
from tests.node.conftest import SimulatedNode


class DenyingAuthorizer(Authorizer):
    __slots__ = ("_denied",)

    def __init__(self, denied: set[tuple[AclOperation, str]]) -> None:
        self._denied = denied

    def allows(self, context: Context, operation: AclOperation, resource: Resource, name: str) -> bool:
        return (operation, name) not in self._denied


def deny(node: SimulatedNode, *denied: tuple[AclOperation, str]) -> None:
    """Denies only these operations on the resources with these names."""
    node.node.authorizer = DenyingAuthorizer(set(denied))
