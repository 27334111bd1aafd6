"""Turns an exception into a sentence that says what to do, and an exit code for the kind of error."""

from quire.client.errors import ClientError, TimedOutError, UnreachableError
from quire.client.servers import AddressError
from quire.client.wrong_server import WrongServerError
from quire.console.failure import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_UNREACHABLE, EXIT_USAGE, Failure
from quire.console.printable import printable
from quire.protocol.errors import ApiError, ErrorCode

_NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
)

_NO_PARTITION = " has no partition "
"""In a message about a topic that exists: advice about finding topics would mislead."""

_LETTERS = "ASCII letters, digits, '.', '_' and '-'"

_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "`quire topics list` shows the topics, and `quire topics create` creates one"
    ),
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or add --if-not-exists to accept the existing topic",
    ErrorCode.INVALID_TOPIC_EXCEPTION: f"a topic's name has up to 249 {_LETTERS}",
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "give a --replication-factor that the cluster can reach; the default is its default.replication.factor"
    ),
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic, or send smaller records",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`quire topics describe` shows the available offsets",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync for acks=all; `quire topics describe` shows the ISR",
    ErrorCode.LEADER_NOT_AVAILABLE: "`quire cluster` shows the nodes",
    ErrorCode.GROUP_ID_NOT_FOUND: "`quire groups list` shows the groups",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; `quire groups describe NAME --members` lists them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop its members first, or change their subscriptions",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`quire transactions list` shows the transactional ids",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "try again in a moment; `quire cluster` shows the nodes",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is starting; try again, or wait longer (--timeout)",
    ErrorCode.VOTER_NOT_FOUND: "`quire quorum describe` shows the voters and the observers",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not support this request; it may be too old",
}


def explain(error: Exception, name: str = "NAME") -> Failure:
    """`name` is the topic, group or transaction of the command, for advice that mentions it."""
    if isinstance(error, AddressError):
        return Failure(f"{error}.", EXIT_USAGE)
    if isinstance(error, WrongServerError):
        return Failure(f"{error}; name a broker's address with -b.", EXIT_UNREACHABLE)
    if isinstance(error, UnreachableError):
        return Failure(f"{error}; start a node with `quire start`, or name another one with -b.", EXIT_UNREACHABLE)
    if isinstance(error, TimedOutError):
        return Failure(f"{error}; check the broker, or wait longer with --timeout.", EXIT_UNREACHABLE)
    if isinstance(error, ClientError):
        return Failure(f"{error}.", EXIT_FAILED)
    if isinstance(error, ApiError):
        return Failure(sentence(error, name), EXIT_NOT_FOUND if error.code in _NOT_FOUND else EXIT_FAILED)
    if isinstance(error, UnicodeEncodeError):
        # Such text comes only from arguments: Python represents their undecodable bytes as lone surrogates.
        return Failure(f"{printable(error.object)} is not valid UTF-8; names and text must be.", EXIT_USAGE)
    if isinstance(error, PermissionError) and error.filename:
        return Failure(f"{error.filename} may not be used (permission denied); {_permitted(error.filename)}.")
    if isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename else ""
        return Failure(f"{path}{(error.strerror or str(error)).lower()}.", EXIT_FAILED)
    return Failure(
        f"unexpected error ({type(error).__name__}: {error}); "
        "set QUIRE_DEBUG=1 to see the traceback, and please report it.",
        EXIT_FAILED,
    )


def _permitted(path: str | bytes) -> str:
    """Advice about a file without permission: the owner of the nearest folder that can be read."""
    import os
    import pwd

    where = os.path.abspath(os.fsdecode(path))
    while True:
        try:
            owner = os.stat(where).st_uid
            break
        except OSError:
            where = os.path.dirname(where)
    if owner == os.geteuid():
        return f"change the permissions of {where}"
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    return f"run the command as {name}, or change the permissions of {where}"


def sentence(error: ApiError, name: str = "NAME") -> str:
    """The broker's message, and advice for the errors that have one."""
    said = printable(str(error)).rstrip(".")
    if error.code.name not in said:
        said = f"{said} ({error.code.name})"
    advice = _ADVICE.get(error.code, "").replace("NAME", name)
    advised = bool(advice) and _LETTERS not in said and _NO_PARTITION not in said
    return f"{said}; {advice}." if advised else f"{said}."
