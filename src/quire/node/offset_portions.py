"""Commits and deletions of many offsets, in portions: each offset counts on its own, and a thousand take milliseconds.

It also lets a client commit more offsets with one request than fit into one batch of records.
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
"""Partitions; few requests have more."""


def are_many(topics: list[Any]) -> bool:
    return sum(len(topic.partitions) for topic in topics) > PORTION


def in_portions(request: T, commit: Callable[[T], Pending[R | ApiError]]) -> Work[R]:
    """Gives `commit` the request's partitions portion by portion; what comes back is one response for all of them."""
    merged: Any = None
    for portion in _portions(request):
        response: Any = yield from outcome(commit(portion))
        if merged is None:
            merged = response
        else:
            _add(merged.topics, response.topics)
    return merged  # type: ignore[no-any-return]


def _portions(request: Any) -> Iterator[Any]:
    """The same request for `PORTION` partitions each, in their order; one at least."""
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
    """A topic that is divided between two portions gets one entry."""
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
