"""The one sentence in a page of Java errors. The texts are shortened from what Spark 4.2 raised."""

import pytest

from quire.spark.query_failure import job_sentence, sentence

PYTHON = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE] Failed
Traceback (most recent call last):
  File "stream_reader.py", line 7, in latestOffset
pyspark_quire.errors.DataLossError: topic orders, partition 2: offsets 5 to 9 are gone.
\tat org.apache.spark.sql.execution.streaming(Some.scala:1)
 SQLSTATE: XXKST"""
ONE_LINE = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE] Failed \
when Python streaming data source perform initialOffset: pyspark_quire.errors.QuireError: topic zz: it does not exist
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1]"""
IN_AN_ENVELOPE = """Query terminated with exception: org.apache.spark.SparkException: Job aborted: \
pyspark_quire.errors.QuireError: rows could not be written: TimedOutError: no answer
\tat x"""
RAISED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
\tat x\n[USER_RAISED_EXCEPTION] topic t, partition 0, offset 4: the value is null SQLSTATE: P0001"""
ANALYSIS = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. SQLSTATE: 42703;\n'Project ['x]"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PYTHON, "topic orders, partition 2: offsets 5 to 9 are gone"),
        (ONE_LINE, "topic zz: it does not exist"),
        (IN_AN_ENVELOPE, "rows could not be written: TimedOutError: no answer"),
        (RAISED, "topic t, partition 0, offset 4: the value is null"),
        (ANALYSIS, "A column with name `x` cannot be resolved"),
        ("[X] failed\nTraceback:\nKeyError: 'price'\n at y", "KeyError: 'price'"),
        ("something else\nand more", "something else"),
        ("", "RuntimeError"),
    ],
)
def test_the_line_that_says_what_happened_is_found(text: str, expected: str) -> None:
    assert sentence(RuntimeError(text)) == expected


def test_an_exception_of_a_job_is_reported_with_its_name_and_the_line_of_the_job() -> None:
    with pytest.raises(KeyError) as raised:
        dict[str, str]()["price"]
    line = raised.traceback[-1].lineno + 1
    assert job_sentence(raised.value) == f"KeyError: 'price' (test_query_failure.py, line {line})"
    assert job_sentence(ValueError("never raised")) == "ValueError: never raised"
