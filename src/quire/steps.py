"""Operations of several requests, written top to bottom as a generator.

An operation yields each `Pending` it waits for and gets its value back; with `wait`, a value that is an exception is
raised there. Nothing here depends on an event loop, so the same operation runs blocking, on asyncio or in the
simulator:

    def create(cluster: Cluster) -> Steps[None]:
        response = yield from cluster.ask(ANY, CreateTopicsRequest(...), CreateTopicsResponse)
        ...
    perform(create(cluster)).when_done(print)
"""

from collections.abc import Generator
from typing import Any, TypeVar

from quire.pending import Pending
from quire.seams import Clock

T = TypeVar("T")
Steps = Generator[Pending[Any], Any, T]


def wait(pending: Pending[T | Exception]) -> Steps[T]:
    """Waits for a result, and raises it if it is an exception."""
    value = yield pending
    if isinstance(value, Exception):
        raise value
    return value  # type: ignore[no-any-return]


def sleep(clock: Clock, delay_ms: float) -> Steps[None]:
    over: Pending[None] = Pending()
    clock.call_later(delay_ms, lambda: over.complete(None))
    yield over


def perform(steps: Steps[T]) -> Pending[T | Exception]:
    """Runs an operation; the `Pending` is completed with its result, or with the exception that ended it."""
    result: Pending[T | Exception] = Pending()

    def resume(value: object) -> None:
        # A loop, not recursion: an operation may wait for any number of results that are available already.
        while True:
            try:
                waited_for = steps.send(value)
            except StopIteration as end:
                result.complete(end.value)
                return
            except Exception as error:
                result.complete(error)
                return
            if not waited_for.done:
                waited_for.when_done(resume)
                return
            value = waited_for.value

    resume(None)
    return result
