"""Jobs that run one by one when the test says so."""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class ManualJobs:
    """Implements `quire.seams.Jobs`."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
        *,
        computes: bool = False,
    ) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:
                failed(error)
            else:
                done(result)

        self._waiting.append(run)

    def stop(self) -> None:
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def run_next(self) -> None:
        self._waiting.popleft()()

    def run_all(self) -> None:
        while self._waiting:
            self.run_next()
