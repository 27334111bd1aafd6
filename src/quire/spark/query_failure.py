"""Finds the one useful sentence in the many lines that Spark reports when a query fails."""

import os
import re
from traceback import extract_tb

from pyspark.errors import PySparkException

import quire

_ENVELOPES = ("PythonException", "StreamingQueryException", "SparkException", "Py4JException", "Py4JJavaError")
_PYTHON_ERROR = re.compile(
    # On a line of its own below a traceback, or after "Failed when ...: ", if there is none.
    r"(?:^|: )([A-Za-z_][\w.]*\.)?(?!(?:" + "|".join(_ENVELOPES) + r"):)"
    r"([A-Z]\w*(?:Error|Exception|Interrupt)): (\S.*)$",
    re.MULTILINE,
)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z_.]+\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
LONGEST = 600


def sentence(error: BaseException) -> str:
    """The error in one line: the exception of Python code if there is one, otherwise the first that Spark names."""
    text = str(error)
    raised = _RAISED.findall(text)
    # Python's own errors need their names: KeyError: 'price'.
    python = [message if module else f"{name}: {message}" for module, name, message in _PYTHON_ERROR.findall(text)]
    conditions = _CONDITION.findall(text)
    found = (raised[-1:] or python[-1:] or conditions[-1:] or text.splitlines()[:1] or [type(error).__name__])[0]
    return found.strip()[:LONGEST].rstrip(".")


def job_sentence(error: BaseException) -> str:
    """The error in the code of a job, with the line of the job if the error is there."""
    from_spark = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")
    said = sentence(error) if from_spark else f"{type(error).__name__}: {error}"
    lines = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_NO_JOBS)]
    lines = [frame for frame in lines if "site-packages" not in frame.filename]
    return f"{said} ({os.path.basename(lines[-1].filename)}, line {lines[-1].lineno})" if lines else said


_NO_JOBS = (os.path.dirname(quire.__file__), os.path.dirname(os.__file__), "<")
