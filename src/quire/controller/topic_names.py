"""Which names a topic may have."""

import re

from quire.metadata.image import ClusterImage
from quire.metadata.topic_names import collision_key
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA

MAX_LENGTH = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    problem = _problem(name)
    if problem:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the topic name is invalid: {problem}")


def check_new_topic_name(image: ClusterImage, name: str, also_new: dict[str, str]) -> None:
    """`also_new` has the collision keys of topics that the same request creates, and their names."""
    if name == CLUSTER_METADATA:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{CLUSTER_METADATA} is the cluster's own and cannot be created")
    check_topic_name(name)
    if name in image.topics_by_name:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
    other = image.colliding_topic(name) or also_new.get(collision_key(name))
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic '{name}' collides with '{other}': names must differ in more than '.' and '_'",
        )


def _problem(name: str) -> str:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"it has {len(name)} characters, and at most {MAX_LENGTH} are allowed"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' has characters other than ASCII letters, digits, '.', '_' and '-'"
    return ""
