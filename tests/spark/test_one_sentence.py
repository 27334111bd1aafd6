"""Which errors reach Spark without their traceback. How Spark prints them is in sink/test_batch_sink."""

import os

import pytest

from pyspark_quire.errors import OptionError, QuireError
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.spark_process import HIDE_TRACEBACK
from quire.client.errors import UnreachableError
from quire.protocol.errors import ApiError, ErrorCode


@pytest.fixture
def called_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    monkeypatch.setattr("pyspark_quire.spark_process._find_input", lambda: "a stream")


@pytest.mark.usefixtures("called_by_spark")
@pytest.mark.parametrize(
    "error",
    [
        QuireError("a"),
        OptionError("b"),
        UnreachableError("c"),
        ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "d"),
    ],
)
def test_an_error_with_a_sentence_hides_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)), one_sentence():
        raise error
    assert os.environ[HIDE_TRACEBACK]


@pytest.mark.usefixtures("called_by_spark")
def test_a_bug_and_an_error_of_a_user_keep_theirs() -> None:
    for error in (AssertionError("bug"), KeyError("price")):
        with pytest.raises(type(error)), one_sentence():
            raise error
    assert not os.environ[HIDE_TRACEBACK]


def test_a_process_that_is_not_sparks_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HIDE_TRACEBACK, raising=False)
    with pytest.raises(QuireError), one_sentence():
        raise QuireError("a")
    assert HIDE_TRACEBACK not in os.environ
