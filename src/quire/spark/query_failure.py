"""The sentence in what Spark says when a query fails: many lines of Java around the one that tells what happened."""

import re

_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Interrupt)): (\S.*)$", re.MULTILINE)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z_.]+\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
LONGEST = 600


def sentence(error: BaseException) -> str:
    """What happened, in a line: what Python code raised if it did, else what Spark names first."""
    text = str(error)
    raised = _RAISED.findall(text)
    python = [message for name, message in _PYTHON_ERROR.findall(text) if name not in _ENVELOPES]
    conditions = _CONDITION.findall(text)
    found = (raised[-1:] or python[-1:] or conditions[-1:] or text.splitlines()[:1] or [type(error).__name__])[0]
    return found.strip()[:LONGEST].rstrip(".")


_ENVELOPES = ("PythonException", "StreamingQueryException", "SparkException", "Py4JException", "Py4JJavaError")
