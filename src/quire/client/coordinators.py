"""Asks coordinators: finds who coordinates each group or transactional id, and sends each of them its share.

A coordinator moves when the leader of its partition does, and takes a moment to load: `ask_coordinators` then asks
again, somebody else if need be, until the cluster's request timeout is over. Who coordinates what is remembered in the
cluster's metadata and forgotten when the node does not answer for it. The admin operations for groups and transactions
stand on this, and so does a member of a group.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from quire.client.backoff import Backoff
from quire.client.cluster import ANY, Cluster
from quire.client.connection import Versions
from quire.client.errors import ClientError, DisconnectedError, UnreachableError
from quire.pending import gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.schema import Message
from quire.steps import Steps, sleep

T = TypeVar("T")
M = TypeVar("M", bound=Message)

BATCHED: Versions = (4, 6)
"""The versions of FindCoordinator that take several keys at once."""

ASK_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Refusals after which nothing was done, and which pass."""


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1


def ask_coordinators(
    cluster: Cluster,
    kind: CoordinatorType,
    keys: Sequence[str],
    build: Callable[[list[str]], Message],
    response: type[M],
    read: Callable[[M], Mapping[str, T | ApiError]],
    *,
    versions: Versions | None = None,
    repeatable: bool = True,
) -> Steps[dict[str, T | ApiError]]:
    """Sends each coordinator one request that `build` makes of its keys; `read` says what was answered for each.

    A request that is not `repeatable` is not sent again when the connection broke before the answer, because then
    nobody knows whether it was carried out; that failure is raised.
    """
    results: dict[str, T | ApiError] = {}
    missing = list(dict.fromkeys(keys))
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        found = yield from find_coordinators(cluster, kind, missing)
        by_node: dict[int, list[str]] = {}
        for key, place in found.items():
            if isinstance(place, ApiError):
                results[key] = place
            else:
                by_node.setdefault(place, []).append(key)
        calls = [cluster.call(node, build(asked), versions=versions) for node, asked in by_node.items()]
        for (node, asked), outcome in zip(by_node.items(), (yield gather(calls)), strict=True):
            if isinstance(outcome, ClientError):
                results |= dict.fromkeys(asked, _out_of_reach(node, outcome, repeatable))
            else:
                assert isinstance(outcome, response), outcome
                answers = read(outcome)
                results |= {key: answers[key] for key in asked}
        missing = [key for key in missing if _moved(results[key])]
        for key in missing:
            cluster.metadata.coordinators.pop((kind, key), None)
        if cluster.clock.monotonic_ms() > deadline_ms:
            break
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
    return results


def ask_coordinator(
    cluster: Cluster,
    kind: CoordinatorType,
    key: str,
    request: Message,
    response: type[M],
    refused: Callable[[M], ErrorCode],
    *,
    versions: Versions | None = None,
    repeatable: bool = True,
) -> Steps[M]:
    """The same for a request about one group or transactional id; `refused` finds its error, if it has one."""

    def read(answer: M) -> dict[str, M | ApiError]:
        code = refused(answer)
        return {key: ApiError(code, f"the coordinator of {key} did not answer ({code.name})") if code else answer}

    found = yield from ask_coordinators(
        cluster, kind, [key], lambda _: request, response, read, versions=versions, repeatable=repeatable
    )
    answer = found[key]
    if isinstance(answer, ApiError):
        raise answer
    return answer


def find_coordinators(cluster: Cluster, kind: CoordinatorType, keys: Sequence[str]) -> Steps[dict[str, int | ApiError]]:
    """The node that coordinates each key, from memory where it is known."""
    known = cluster.metadata.coordinators
    unknown = [key for key in keys if (kind, key) not in known]
    failures: dict[str, ApiError] = {}
    if unknown:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=unknown)
        response = yield from cluster.ask(ANY, request, FindCoordinatorResponse, versions=BATCHED)
        for answer in response.coordinators:
            if answer.error_code:
                code = ErrorCode(answer.error_code)
                failures[answer.key] = ApiError(code, answer.error_message or f"{answer.key} has no coordinator now")
            else:
                known[kind, answer.key] = answer.node_id
        if any(known.get((kind, key)) not in cluster.metadata.brokers for key in unknown if key not in failures):
            yield from cluster.refresh([])
    return {key: failures.get(key) or known[kind, key] for key in keys}


def ask_every_broker(
    cluster: Cluster,
    request: Message,
    response: type[M],
    code: Callable[[M], int],
    *,
    versions: Versions | None = None,
) -> Steps[tuple[dict[int, M], ApiError | ClientError | None]]:
    """What each broker answers for what it coordinates, by node, and why some did not, if any failed to.

    Only a broker that has loaded what it coordinates can tell, so one that has not is asked again.
    """
    answers: dict[int, M] = {}
    failures: dict[int, ApiError | ClientError] = {}
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    yield from cluster.refresh([])
    missing = list(cluster.metadata.brokers)
    while missing:
        calls = [cluster.call(node, request, versions=versions) for node in missing]
        for node, outcome in zip(missing, (yield gather(calls)), strict=True):
            failures.pop(node, None)
            if isinstance(outcome, ClientError):
                failures[node] = outcome
                continue
            assert isinstance(outcome, response), outcome
            refusal = ErrorCode(code(outcome))
            if refusal:
                failures[node] = ApiError(refusal, f"node {node} could not tell what it coordinates ({refusal.name})")
            else:
                answers[node] = outcome
        missing = [node for node in missing if _moved(failures.get(node))]
        if cluster.clock.monotonic_ms() > deadline_ms:
            break
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
    return answers, next(iter(failures.values()), None)


def _out_of_reach(node: int, failure: ClientError, repeatable: bool) -> ApiError:
    """As if another node had said that this one is gone; what else may have gone wrong is raised."""
    if isinstance(failure, UnreachableError) or (repeatable and isinstance(failure, DisconnectedError)):
        return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator, node {node}, is not there: {failure}")
    raise failure


def _moved(result: object) -> bool:
    return isinstance(result, ApiError) and result.code in ASK_AGAIN
