"""Turns what went wrong into a sentence that says what to do, and an exit code that says what kind of thing it was."""

from quire.cli.lazy import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_UNREACHABLE, EXIT_USAGE, Failure
from quire.cli.printable import printable
from quire.client.errors import ClientError, TimedOutError, UnreachableError
from quire.client.servers import AddressError
from quire.protocol.errors import ApiError, ErrorCode

_NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
)

_LETTERS = "ASCII letters, digits, '.', '_' and '-'"

_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`quire topics list` shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or add --if-not-exists to accept the one there is",
    ErrorCode.INVALID_TOPIC_EXCEPTION: f"a topic's name has up to 249 {_LETTERS}",
    ErrorCode.INVALID_REPLICATION_FACTOR: "a topic cannot have more replicas than there are brokers (`quire cluster`)",
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic, or send smaller records",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`quire topics describe` shows which offsets there are",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync for acks=all; `quire topics describe` shows which",
    ErrorCode.LEADER_NOT_AVAILABLE: "no replica of the partition is up to lead it; `quire cluster` shows the nodes",
    ErrorCode.GROUP_ID_NOT_FOUND: "`quire groups list` shows what there is",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; `quire groups describe NAME --members` shows who they are",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop its members first, or let them read something else",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`quire transactions list` shows what there is",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "try again in a moment; `quire cluster` shows the nodes",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "it has just taken over; try again in a moment, or wait longer (--timeout)",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old or too new for this",
}


def explain(error: Exception, name: str = "NAME") -> Failure:
    """`name` is what the command was about, for advice that says it again."""
    if isinstance(error, AddressError):
        return Failure(f"{error}.", EXIT_USAGE)
    if isinstance(error, UnreachableError):
        return Failure(f"{error}; start a node with `quire start`, or name another one with -b.", EXIT_UNREACHABLE)
    if isinstance(error, TimedOutError):
        return Failure(f"{error}; see whether the broker is well, or wait longer with --timeout.", EXIT_UNREACHABLE)
    if isinstance(error, ClientError):
        return Failure(f"{error}.", EXIT_FAILED)
    if isinstance(error, ApiError):
        return Failure(sentence(error, name), EXIT_NOT_FOUND if error.code in _NOT_FOUND else EXIT_FAILED)
    if isinstance(error, UnicodeEncodeError):
        # Only an argument can be such a text: Python keeps its bytes as halves of surrogate pairs.
        return Failure(f"{printable(error.object)} is not valid UTF-8; names and text have to be.", EXIT_USAGE)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return Failure(f"{place}{(error.strerror or str(error)).lower()}.", EXIT_FAILED)
    return Failure(
        f"something unforeseen happened ({type(error).__name__}: {error}); "
        "QUIRE_DEBUG=1 in the environment shows where, please report it.",
        EXIT_FAILED,
    )


def sentence(error: ApiError, name: str = "NAME") -> str:
    """The broker's words, and what to do where that is known."""
    said = printable(str(error)).rstrip(".")
    if error.code.name not in said:
        said = f"{said} ({error.code.name})"
    advice = _ADVICE.get(error.code, "").replace("NAME", name)
    return f"{said}; {advice}." if advice and _LETTERS not in said else f"{said}."
