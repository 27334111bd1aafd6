"""What the handlers of transactional requests have in common: whether they may, and the way to the shard."""

from __future__ import annotations  # Those of functions in functions are evaluated for every request otherwise.

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from quire.coordinators.runtime.result import Result
from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.producer_ids import NO_ID
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from quire.coordinators.transaction.machine import TransactionMachine
    from quire.node.node import Node

R = TypeVar("R")

# An enum's member is looked up anew each time it is named by its class.
_WRITE = Operation.WRITE
_TRANSACTIONAL_ID = Resource.TRANSACTIONAL_ID


def check_transactional_id(node: Node, context: Context, transactional_id: str, needed: Operation) -> None:
    if not node.authorizer.allows(context, needed, _TRANSACTIONAL_ID, transactional_id):
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"using transactional id {transactional_id} is not allowed"
        )


def run_in_transaction(
    node: Node,
    context: Context,
    transactional_id: str,
    operation: Callable[[TransactionMachine, int], Result[R]],
) -> Pending[R | ApiError]:
    """Runs `operation` on (machine, now) of the shard that keeps the id; ApiError where that cannot be."""
    check_transactional_id(node, context, transactional_id, _WRITE)
    return node.coordinators.transactions.shard_for(transactional_id).run(operation)


def run_with_producer_id(
    node: Node,
    context: Context,
    transactional_id: str,
    operation: Callable[[TransactionMachine, int, int], Result[R]],
) -> Pending[R | ApiError]:
    """Runs `operation` on (machine, now, producer id): without an id first, and with a new one if it needs that."""

    def run(producer_id: int) -> Pending[Any]:
        return run_in_transaction(
            node, context, transactional_id, lambda machine, now_ms: operation(machine, now_ms, producer_id)
        )

    first = run(NO_ID)
    if first.done and not isinstance(first.value, ApiError):
        return first
    return _again_with_producer_id(node, first, run)


def _again_with_producer_id(node: Node, first: Pending[Any], run: Callable[[int], Pending[Any]]) -> Pending[Any]:
    """What becomes of `first`; or of running it again, should it turn out that it needs a producer id."""
    from quire.coordinators.transaction.producer_epochs import NeedsProducerId

    answer: Pending[Any] = Pending()

    def finish(outcome: Any) -> None:
        answer.complete_once(outcome)

    def tried(outcome: Any) -> None:
        if isinstance(outcome, NeedsProducerId):
            node.producer_ids.next_id().when_done(lambda producer_id: again(outcome, producer_id))
        else:
            finish(outcome)

    def again(refusal: ApiError, producer_id: int) -> None:
        if producer_id == NO_ID:
            finish(refusal)
            return
        try:
            run(producer_id).when_done(finish)
        except ApiError as error:
            finish(error)

    first.when_done(tried)
    return answer
