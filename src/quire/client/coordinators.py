"""Finds the coordinators of groups or transactional ids, divides a request among them, and retries while they move.

A coordinator moves when the leader of its partition does, and needs a moment to load its state. `ask_coordinators` then
retries, with another node if necessary, until the cluster's request time-out is over. The cluster's metadata caches the
coordinators; an entry is removed when the node is no longer the coordinator. The admin operations for groups and
transactions use this, and so do members of a group.
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
"""The versions of FindCoordinator with several keys in one request."""

ASK_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors after which nothing was done, and a retry helps."""


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
    timeout_ms: float | None = None,
) -> Steps[dict[str, T | ApiError]]:
    """Sends each coordinator one request, which `build` makes from its keys; `read` takes the response apart again.

    A request that is not `repeatable` is not sent again if the connection was lost before the response, because it is
    unknown whether the coordinator has carried it out; the failure is raised. `timeout_ms` is for requests that
    coordinators answer late on purpose; the default is the cluster's.
    """
    results: dict[str, T | ApiError] = {}
    missing = list(dict.fromkeys(keys))
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        found = yield from find_coordinators(cluster, kind, missing)
        by_node: dict[int, list[str]] = {}
        for key, coordinator in found.items():
            if isinstance(coordinator, ApiError):
                results[key] = coordinator
            else:
                by_node.setdefault(coordinator, []).append(key)
        calls = [
            cluster.call(node, build(asked), versions=versions, timeout_ms=timeout_ms)
            for node, asked in by_node.items()
        ]
        for (node, asked), outcome in zip(by_node.items(), (yield gather(calls)), strict=True):
            if isinstance(outcome, ClientError):
                results |= dict.fromkeys(asked, _unreachable(node, outcome, repeatable))
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
    timeout_ms: float | None = None,
) -> Steps[M]:
    """The same for a request about one group or transactional id; `refused` returns the error of a response."""

    def read(answer: M) -> dict[str, M | ApiError]:
        code = refused(answer)
        return {key: ApiError(code, f"the coordinator of {key} did not answer ({code.name})") if code else answer}

    found = yield from ask_coordinators(
        cluster,
        kind,
        [key],
        lambda _: request,
        response,
        read,
        versions=versions,
        repeatable=repeatable,
        timeout_ms=timeout_ms,
    )
    answer = found[key]
    if isinstance(answer, ApiError):
        raise answer
    return answer


def find_coordinators(cluster: Cluster, kind: CoordinatorType, keys: Sequence[str]) -> Steps[dict[str, int | ApiError]]:
    """The coordinator of each key, from the cache if it is there."""
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
    """The response of each broker about what it coordinates, by node, and the first failure, if there is one.

    A broker that has not loaded its state yet cannot answer, so the request is retried.
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
                failures[node] = ApiError(refusal, f"node {node} cannot list what it coordinates ({refusal.name})")
            else:
                answers[node] = outcome
        missing = [node for node in missing if _moved(failures.get(node))]
        if cluster.clock.monotonic_ms() > deadline_ms:
            break
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
    return answers, next(iter(failures.values()), None)


def _unreachable(node: int, failure: ClientError, repeatable: bool) -> ApiError:
    """The error that a broker would return if its coordinator were not available; all other failures are raised."""
    if isinstance(failure, UnreachableError) or (repeatable and isinstance(failure, DisconnectedError)):
        return ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator, node {node}, is not available: {failure}"
        )
    raise failure


def _moved(result: object) -> bool:
    return isinstance(result, ApiError) and result.code in ASK_AGAIN
