"""The watch over the event loop: it reports what blocked the loop, and ignores a loop that only waits."""

import logging
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
def run(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[Callable[[], None], int], list[str]]]:
    """Runs a function on a watched loop until the watch has logged this many lines, or for a few of its checks."""
    loop = new_event_loop()
    watch = LoopWatch(loop, LIMIT_MS)

    def run(callback: Callable[[], None], expected: int) -> list[str]:
        looks_left = 500 if expected else 10

        def look() -> None:
            nonlocal looks_left
            looks_left -= 1
            if not looks_left or (expected and len(caplog.records) >= expected):
                loop.stop()
            else:
                loop.call_later(LIMIT_MS / 1000, look)

        with caplog.at_level(logging.WARNING, "quire.loop"):
            loop.call_later(2 * LIMIT_MS / 1000, callback)
            loop.call_soon(look)
            loop.run_forever()
        return [record.getMessage() for record in caplog.records]

    yield run
    watch.stop()
    loop.close()


def test_the_watch_names_what_blocks_the_loop(run: Callable[[Callable[[], None], int], list[str]]) -> None:
    (said,) = run(lambda: work_for(8 * LIMIT_MS), 1)
    assert HELD in said
    assert "work_for" in said


def test_a_loop_that_waits_is_not_held(run: Callable[[Callable[[], None], int], list[str]]) -> None:
    assert run(lambda: None, 0) == []
