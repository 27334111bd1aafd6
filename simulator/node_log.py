"""What nodes log during a run: part of the story, and a way to detect exceptions that they swallowed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class NodeLog(logging.Handler):
    def __init__(self, tell: Callable[[str], None], speaker: Callable[[], str] = lambda: "") -> None:
        """`speaker` is the name of the node whose code runs, if there are several."""
        super().__init__(logging.INFO)
        self._tell = tell
        self._speaker = speaker
        self.unexpected: str | None = None
        """The first message logged with an exception, which the node did not expect."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        name = self._speaker()
        self._tell(f"{name + ' ' if name else ''}{record.name} {record.levelname.lower()}: {message}")
        if record.exc_info is not None and record.exc_info[1] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            self._tell(trace)
            self.unexpected = self.unexpected or f"{message}: {record.exc_info[1]!r}"

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Replaces the handlers of all of Quire's loggers."""
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
