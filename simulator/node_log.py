"""What the node logs during a run: part of the story, and a way to find out about exceptions that it swallowed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class NodeLog(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell
        self.unexpected: str | None = None
        """The first thing logged with an exception: whoever logs one did not expect it."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._tell(f"{record.name} {record.levelname.lower()}: {message}")
        if record.exc_info is not None and record.exc_info[1] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            self._tell(trace)
            self.unexpected = self.unexpected or f"{message}: {record.exc_info[1]!r}"

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listens to all of Quire's loggers instead of whoever else does."""
        logger = logging.getLogger("quire")
        before = (logger.level, logger.propagate)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before[0])
            logger.propagate = before[1]
