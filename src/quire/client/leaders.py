"""Asks leaders: sends the leader of each partition its share of a question, and asks again while leaders move.

The counterpart of `coordinators` for what only the leader of a partition knows or does. What cannot be had within the
cluster's request timeout comes back as the last refusal, or is raised where no answer came at all.
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
    places: Sequence[P],
    build: Callable[[list[P]], Message],
    response: type[M],
    read: Callable[[M], Mapping[P, T | ApiError]],
    *,
    repeatable: bool = True,
) -> Steps[dict[P, T | ApiError]]:
    """Sends each leader one request that `build` makes of its partitions; `read` says what was answered for each.

    A request that is not `repeatable` is not sent again when the connection broke before the answer: nobody knows
    then whether it was carried out, and the failure is raised.
    """
    results: dict[P, T | ApiError | ClientError] = {}
    missing = list(places)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        by_leader: dict[int, list[P]] = {}
        for place in missing:
            leader = cluster.metadata.leader(*place)
            if leader is None:
                results[place] = ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader now")
            else:
                by_leader.setdefault(leader, []).append(place)
        calls = [cluster.call(leader, build(asked)) for leader, asked in by_leader.items()]
        for asked, outcome in zip(by_leader.values(), (yield gather(calls)), strict=True):
            if isinstance(outcome, ClientError):
                if not _passes(outcome, repeatable):
                    raise outcome
                results |= dict.fromkeys(asked, outcome)
            else:
                assert isinstance(outcome, response), outcome
                answers = read(outcome)
                results |= {place: answers[place] for place in asked}
        missing = [place for place in missing if _moved(results[place])]
        if cluster.clock.monotonic_ms() > deadline_ms:
            break
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
            yield from cluster.refresh(sorted({topic for topic, _ in missing}))
    answered: dict[P, T | ApiError] = {}
    for place, result in results.items():
        if isinstance(result, ClientError):
            raise result
        answered[place] = result
    return answered


def _passes(failure: ClientError, repeatable: bool) -> bool:
    return isinstance(failure, UnreachableError) or (repeatable and isinstance(failure, DisconnectedError))


def _moved(result: object) -> bool:
    return isinstance(result, ClientError) or (isinstance(result, ApiError) and result.code.retriable)
