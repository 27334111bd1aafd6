"""Divides commits and deletions of many offsets into portions, because a thousand offsets take milliseconds.

So a client can commit more offsets with one request than fit into one record batch.
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, TypeVar

from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError

T = TypeVar("T")
R = TypeVar("R")

PORTION = 500
"""The partitions of one portion. Few requests have more."""


def are_many(topics: list[Any]) -> bool:
    return sum(len(topic.partitions) for topic in topics) > PORTION


def in_portions(
    request: T, commit: Callable[[T], Pending[R | ApiError]], refuse: Callable[[T, ApiError], R]
) -> Work[R]:
    """Calls `commit` for each portion of the request, one after the other, and merges the responses into one.

    If one fails, because the member has left its group meanwhile for example, it and the rest are refused. The response
    still says that the portions before it are committed.
    """
    merged: Any = None
    failure: ApiError | None = None
    for portion in _portions(request):
        response: Any
        if failure is None:
            try:
                response = yield from outcome(commit(portion))
            except ApiError as error:
                if merged is None:
                    raise
                failure = error
        if failure is not None:
            response = refuse(portion, failure)
        if merged is None:
            merged = response
        else:
            _add(merged.topics, response.topics)
    return merged  # type: ignore[no-any-return]


def _portions(request: Any) -> Iterator[Any]:
    """Copies of the request with at most `PORTION` partitions each, in order."""
    portion: list[Any] = []
    room = PORTION
    for topic in request.topics:
        start = 0
        while start < len(topic.partitions):
            part = copy(topic)
            part.partitions = topic.partitions[start : start + room]
            portion.append(part)
            start += len(part.partitions)
            room -= len(part.partitions)
            if not room:
                yield _with_topics(request, portion)
                portion, room = [], PORTION
    if portion:
        yield _with_topics(request, portion)


def _with_topics(request: Any, topics: list[Any]) -> Any:
    portion = copy(request)
    portion.topics = topics
    return portion


def _add(topics: list[Any], more: list[Any]) -> None:
    """Appends `more`. A topic that two portions share gets one entry."""
    for topic in more:
        last = topics[-1] if topics else None
        if (
            last is not None
            and last.name == topic.name
            and getattr(last, "topic_id", None) == getattr(topic, "topic_id", None)
        ):
            last.partitions += topic.partitions
        else:
            topics.append(topic)
