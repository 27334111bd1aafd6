"""Divides a request among the leaders of its partitions, and retries while leaders move.

This is the counterpart of `coordinators` for requests that only a partition's leader can answer. When the cluster's
request time-out is over, the result of a partition is its last error; if no response came, the failure is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import ClientError, DisconnectedError, UnreachableError
from quire.pending import gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from quire.steps import Steps, sleep

M = TypeVar("M", bound=Message)
P = TypeVar("P", bound=tuple[str, int])
T = TypeVar("T")


def ask_leaders(
    cluster: Cluster,
    topic_partitions: Sequence[P],
    build: Callable[[list[P]], Message],
    response: type[M],
    read: Callable[[M], Mapping[P, T | ApiError]],
    *,
    repeatable: bool = True,
) -> Steps[dict[P, T | ApiError]]:
    """Sends each leader one request, which `build` makes from its partitions; `read` takes the response apart again.

    A request that is not `repeatable` is not sent again if the connection was lost before the response, because it is
    unknown whether the leader has carried it out; the failure is raised.
    """
    results: dict[P, T | ApiError | ClientError] = {}
    missing = list(topic_partitions)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        by_leader: dict[int, list[P]] = {}
        for topic_partition in missing:
            leader = cluster.metadata.leader(*topic_partition)
            if leader is None:
                results[topic_partition] = ApiError(
                    ErrorCode.LEADER_NOT_AVAILABLE, f"{topic_partition} has no leader now"
                )
            else:
                by_leader.setdefault(leader, []).append(topic_partition)
        calls = [cluster.call(leader, build(asked)) for leader, asked in by_leader.items()]
        for asked, outcome in zip(by_leader.values(), (yield gather(calls)), strict=True):
            if isinstance(outcome, ClientError):
                if not _passes(outcome, repeatable):
                    raise outcome
                results |= dict.fromkeys(asked, outcome)
            else:
                assert isinstance(outcome, response), outcome
                answers = read(outcome)
                results |= {topic_partition: answers[topic_partition] for topic_partition in asked}
        missing = [topic_partition for topic_partition in missing if _moved(results[topic_partition])]
        if cluster.clock.monotonic_ms() > deadline_ms:
            break
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
            yield from cluster.refresh(sorted({topic for topic, _ in missing}))
    answered: dict[P, T | ApiError] = {}
    for topic_partition, result in results.items():
        if isinstance(result, ClientError):
            raise result
        answered[topic_partition] = result
    return answered


def _passes(failure: ClientError, repeatable: bool) -> bool:
    return isinstance(failure, UnreachableError) or (repeatable and isinstance(failure, DisconnectedError))


def _moved(result: object) -> bool:
    return isinstance(result, ClientError) or (isinstance(result, ApiError) and result.code.retriable)
