"""Errors with a sentence for the user reach Spark without a Python traceback, so that the sentence stands first.

Spark's Python processes report an exception with its traceback, and end after it. Their own switch, an environment
variable that they read at that moment, leaves out the traceback. It is set only for errors that say by themselves what
happened; a bug in Quire, or an error in a user's function, keeps its traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_quire.errors import QuireError
from pyspark_quire.spark_process import hide_traceback
from quire.client.errors import ClientError
from quire.protocol.errors import ApiError


@contextmanager
def one_sentence() -> Iterator[None]:
    """Around everything that Spark calls, also as a decorator. It does nothing in a process that is not Spark's."""
    try:
        yield
    except (QuireError, ClientError, ApiError):
        hide_traceback()
        raise
