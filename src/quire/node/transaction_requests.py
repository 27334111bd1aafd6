"""What the handlers of transactional requests share: authorization, and running an operation in the right shard."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from quire.coordinators.runtime.result import CoordinatorResult
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.producer_ids import NO_ID
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from quire.coordinators.transaction.machine import TransactionMachine
    from quire.node.node import Node

R = TypeVar("R")

# Module constants, because a lookup of an enum member through its class is slow.
_WRITE = AclOperation.WRITE
_TRANSACTIONAL_ID = Resource.TRANSACTIONAL_ID


def check_transactional_id(node: "Node", context: Context, transactional_id: str, needed: AclOperation) -> None:
    if not node.authorizer.allows(context, needed, _TRANSACTIONAL_ID, transactional_id):
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"using transactional id {transactional_id} is not allowed"
        )


def run_in_transaction(
    node: "Node",
    context: Context,
    transactional_id: str,
    operation: Callable[["TransactionMachine", int], CoordinatorResult[R]],
) -> Pending[R | ApiError]:
    """Runs `operation(machine, now_ms)` in the shard of the transactional id; ApiError if this is not possible."""
    check_transactional_id(node, context, transactional_id, _WRITE)
    return node.coordinators.transactions.shard_for(transactional_id).run(operation)


def run_with_producer_id(
    node: "Node",
    context: Context,
    transactional_id: str,
    operation: Callable[["TransactionMachine", int, int], CoordinatorResult[R]],
) -> Pending[R | ApiError]:
    """Runs `operation(machine, now_ms, producer_id)`: first without an id, then with a new one if it needs that."""
    attempt = _Attempt(node, context, transactional_id, operation)
    first = attempt.run(NO_ID)
    if first.done and not isinstance(first.value, ApiError):
        return first
    return attempt.retried(first)


class _Attempt:
    """An operation that may have to run a second time, with a new producer id."""

    __slots__ = ("_context", "_node", "_operation", "_response", "_transactional_id")

    def __init__(
        self,
        node: "Node",
        context: Context,
        transactional_id: str,
        operation: Callable[["TransactionMachine", int, int], CoordinatorResult[Any]],
    ) -> None:
        self._node = node
        self._context = context
        self._transactional_id = transactional_id
        self._operation = operation
        self._response: Pending[Any]

    def run(self, producer_id: int) -> Pending[Any]:
        operation = self._operation
        return run_in_transaction(
            self._node,
            self._context,
            self._transactional_id,
            lambda machine, now_ms: operation(machine, now_ms, producer_id),
        )

    def retried(self, first: Pending[Any]) -> Pending[Any]:
        """The response of the first run, or of the second one if that is needed."""
        self._response = Pending()
        first.when_done(self._first_done)
        return self._response

    def _first_done(self, response: Any) -> None:
        from quire.coordinators.transaction.producer_epochs import NeedsProducerId

        if isinstance(response, NeedsProducerId):
            self._node.producer_ids.next_id().when_done(partial(self._run_again, response))
        else:
            self._response.complete_once(response)

    def _run_again(self, refusal: ApiError, producer_id: int) -> None:
        if producer_id == NO_ID:
            self._response.complete_once(refusal)
            return
        try:
            self.run(producer_id).when_done(self._complete)
        except ApiError as error:
            self._response.complete_once(error)

    def _complete(self, response: Any) -> None:
        self._response.complete_once(response)
