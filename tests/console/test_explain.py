import click
import pytest

from quire.client.errors import ClientError, DisconnectedError, TimedOutError, UnreachableError
from quire.client.servers import AddressError
from quire.console.explain import explain
from quire.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (UnreachableError("a:1 is not reachable: connection refused"), 3, "quire start"),
        (TimedOutError("no answer within 30 s"), 3, "--timeout"),
        (AddressError("'x' is not an address"), 2, "address"),
        (DisconnectedError("gone"), 1, "gone"),
        (ClientError("acks=7 is not known"), 1, "acks=7"),
        (ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic x does not exist"), 4, "quire topics list"),
        (ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'x' already exists."), 1, "--if-not-exists"),
        (ApiError(ErrorCode.GROUP_ID_NOT_FOUND, "group x does not exist"), 4, "quire groups list"),
        (ApiError(ErrorCode.NON_EMPTY_GROUP, "group x has members"), 1, "stop its members first"),
        (ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "x is not known"), 4, "quire transactions list"),
        (ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "node 2 is not there"), 1, "try again"),
        (ApiError(ErrorCode.POLICY_VIOLATION, "not allowed"), 1, "POLICY_VIOLATION"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1, "x.txt"),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"), 2, "a\\udcff is not valid UTF-8"),
        (RuntimeError("odd"), 1, "QUIRE_DEBUG"),
    ],
)
def test_every_failure_is_one_sentence_with_its_exit_code(error: Exception, exit_code: int, words: str) -> None:
    failure = explain(error)
    assert isinstance(failure, click.ClickException)
    assert failure.exit_code == exit_code
    assert words in failure.message
    assert failure.message.endswith(".") and not failure.message.endswith("..")
    assert "\n" not in failure.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "3 replicas are not supported"),
            "3 replicas are not supported (INVALID_REPLICATION_FACTOR); give a --replication-factor that the cluster "
            "can reach; the default is its default.replication.factor.",
        ),
        (
            ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "o1-2 has no leader now"),
            "o1-2 has no leader now (LEADER_NOT_AVAILABLE); `quire cluster` shows the nodes.",
        ),
        (
            ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic orders has no partition 77, only 0 to 2"),
            "topic orders has no partition 77, only 0 to 2 (UNKNOWN_TOPIC_OR_PARTITION).",
        ),
    ],
)
def test_advice_neither_repeats_nor_contradicts_the_message(error: ApiError, message: str) -> None:
    assert explain(error).message == message
