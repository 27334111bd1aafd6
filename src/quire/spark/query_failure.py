"""The sentence in what Spark says when a query fails: many lines of Java around the one that tells what happened."""

import os
import re
from traceback import extract_tb

from pyspark.errors import PySparkException

import quire

_PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Interrupt)): (\S.*)$", re.MULTILINE)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z_.]+\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
LONGEST = 600


def sentence(error: BaseException) -> str:
    """What happened, in a line: what Python code raised if it did, else what Spark names first."""
    text = str(error)
    raised = _RAISED.findall(text)
    # Python's own errors say little without their names: KeyError: 'price'.
    python = [
        message if module else f"{name}: {message}"
        for module, name, message in _PYTHON_ERROR.findall(text)
        if name not in _ENVELOPES
    ]
    conditions = _CONDITION.findall(text)
    found = (raised[-1:] or python[-1:] or conditions[-1:] or text.splitlines()[:1] or [type(error).__name__])[0]
    return found.strip()[:LONGEST].rstrip(".")


def job_sentence(error: BaseException) -> str:
    """What went wrong in the code of a job, and at which of its lines if it was one of them."""
    from_spark = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")
    said = sentence(error) if from_spark else f"{type(error).__name__}: {error}"
    lines = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_NO_JOBS)]
    lines = [frame for frame in lines if "site-packages" not in frame.filename]
    return f"{said} ({os.path.basename(lines[-1].filename)}, line {lines[-1].lineno})" if lines else said


_NO_JOBS = (os.path.dirname(quire.__file__), os.path.dirname(os.__file__), "<")
_ENVELOPES = ("PythonException", "StreamingQueryException", "SparkException", "Py4JException", "Py4JJavaError")
