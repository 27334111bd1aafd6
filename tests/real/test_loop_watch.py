"""The watch over the event loop: it says who held it, and nothing of a loop that merely waits."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from quire.real.loop import new_event_loop
from quire.real.loop_watch import HELD, LoopWatch

LIMIT_MS = 20


def work_for(duration_ms: float) -> None:
    until_s = time.thread_time() + duration_ms / 1000
    while time.thread_time() < until_s:
        pass


@pytest.fixture
def run(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[Callable[[], None]], list[str]]]:
    """Runs something on a loop that is watched, and says what the watch has said until `done` is called."""
    loop = new_event_loop()
    watch = LoopWatch(loop, LIMIT_MS)

    def run(callback: Callable[[], None]) -> list[str]:
        with caplog.at_level(logging.WARNING, "quire.loop"):
            loop.call_soon(callback)
            # Two looks later the watch has said what it has to say.
            waited = threading.Timer(10 * LIMIT_MS / 1000, lambda: loop.call_soon_threadsafe(loop.stop))
            waited.start()
            loop.run_forever()
        return [record.getMessage() for record in caplog.records]

    yield run
    watch.stop()
    loop.close()


def test_what_holds_the_loop_is_named(run: Callable[[Callable[[], None]], list[str]]) -> None:
    (said,) = run(lambda: work_for(5 * LIMIT_MS))
    assert HELD in said
    assert "work_for" in said


def test_a_loop_that_waits_is_not_held(run: Callable[[Callable[[], None]], list[str]]) -> None:
    assert run(lambda: None) == []
