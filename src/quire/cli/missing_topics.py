"""Failures for topics that do not exist, with the nearest name that does."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import explain
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.protocol.errors import ApiError, ErrorCode


def topic_failures(client: BlockingClient, errors: Mapping[str, ApiError]) -> list[Failure]:
    """The error of each topic as a failure."""
    if not any(error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for error in errors.values()):
        return [explain(error, name) for name, error in errors.items()]
    found = client.run(describe_topics(client.cluster))
    existing = [name for name, topic in found.items() if isinstance(topic, Topic) and not topic.internal]
    return [_failure(name, error, existing) for name, error in errors.items()]


def _failure(name: str, error: ApiError, existing: Sequence[str]) -> Failure:
    if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return explain(error, name)
    nearest = get_close_matches(name, existing, n=1)
    missing = f"topic {name} does not exist"  # brokers say it in several ways
    if not nearest:
        return explain(ApiError(error.code, missing), name)
    return Failure(f"{missing}; did you mean {nearest[0]}?", EXIT_NOT_FOUND)
