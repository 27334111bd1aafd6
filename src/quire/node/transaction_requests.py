"""What the handlers of transactional requests have in common: whether they may, and the way to the shard."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

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


def check_transactional_id(node: "Node", context: Context, transactional_id: str, needed: Operation) -> None:
    if not node.authorizer.allows(context, needed, Resource.TRANSACTIONAL_ID, transactional_id):
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"using transactional id {transactional_id} is not allowed"
        )


def run_in_transaction(
    node: "Node",
    context: Context,
    transactional_id: str,
    operation: Callable[["TransactionMachine", int], Result[R]],
) -> Pending[R | ApiError]:
    """Runs `operation` on (machine, now) of the shard that keeps the id; ApiError where that cannot be."""
    check_transactional_id(node, context, transactional_id, Operation.WRITE)
    return node.coordinators.transactions.shard_for(transactional_id).run(operation)


def run_with_producer_id(
    node: "Node",
    context: Context,
    transactional_id: str,
    operation: Callable[["TransactionMachine", int, int], Result[R]],
) -> Pending[R | ApiError]:
    """Runs `operation` on (machine, now, producer id): without an id first, and with a new one if it needs that."""
    from quire.coordinators.transaction.producer_epochs import NeedsProducerId

    answer: Pending[R | ApiError] = Pending()

    def run(producer_id: int) -> Pending[R | ApiError]:
        return run_in_transaction(
            node, context, transactional_id, lambda machine, now_ms: operation(machine, now_ms, producer_id)
        )

    def tried(outcome: R | ApiError) -> None:
        if isinstance(outcome, NeedsProducerId):
            node.producer_ids.next_id().when_done(lambda producer_id: again(outcome, producer_id))
        else:
            answer.complete_once(outcome)

    def again(refusal: ApiError, producer_id: int) -> None:
        if producer_id == NO_ID:
            answer.complete_once(refusal)
            return
        try:
            run(producer_id).when_done(lambda outcome: _complete(answer, outcome))
        except ApiError as error:
            answer.complete_once(error)

    run(NO_ID).when_done(tried)
    return answer


def _complete(answer: Pending[R | ApiError], outcome: R | ApiError) -> None:
    answer.complete_once(outcome)
