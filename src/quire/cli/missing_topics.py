"""Failures for topics that do not exist: each says which topic the user may have meant, or how to create it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import explain
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.console.printable import printable
from quire.protocol.errors import ApiError, ErrorCode


def topic_failures(
    client: BlockingClient, errors: Mapping[str, ApiError], *, creating_helps: bool = True
) -> list[Failure]:
    """The error of each topic as a failure. `creating_helps` is false for commands that an empty topic is no use to."""
    if not any(error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for error in errors.values()):
        return [explain(error, name) for name, error in errors.items()]
    found = client.run(describe_topics(client.cluster))
    existing = [name for name, topic in found.items() if isinstance(topic, Topic) and not topic.internal]
    return [_failure(name, error, existing, creating_helps) for name, error in errors.items()]


@contextmanager
def explaining_topic(client: BlockingClient, name: str, *, creating_helps: bool = True) -> Iterator[None]:
    """An error inside is one of this topic."""
    try:
        yield
    except ApiError as error:
        (failure,) = topic_failures(client, {name: error}, creating_helps=creating_helps)
        raise failure from error


def _failure(name: str, error: ApiError, existing: Sequence[str], creating_helps: bool) -> Failure:
    if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return explain(error, name)
    shown = printable(name)
    if nearest := get_close_matches(name, existing, n=1):
        advice = f"did you mean {nearest[0]}?"
    elif creating_helps:
        advice = f"create it with `quire topics create {shown}`."
    else:
        advice = "`quire topics list` shows the topics."
    return Failure(f"topic {shown} does not exist; {advice}", EXIT_NOT_FOUND)  # brokers say it in several ways
