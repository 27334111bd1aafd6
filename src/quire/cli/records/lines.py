"""Reads lines as bytes from a file or a pipe, without blocking the client's event loop."""

import os
import selectors
import stat
from collections.abc import Callable

from quire.cli.line_splitter import LineSplitter
from quire.client.shell_loop import BlockingLoop

CHUNK_BYTES = 256 * 1024


class LineSource:
    """Reads chunks of lines from a descriptor. On a pipe or terminal, the loop runs until input arrives.

    Once `over` returns true, the input counts as ended; the loop has to be woken then.
    """

    def __init__(self, loop: BlockingLoop, descriptor: int, over: Callable[[], bool] = lambda: False) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._over = over
        self._splitter = LineSplitter()
        self._waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
        self.bytes_read = 0

    def read(self) -> list[bytes] | None:
        """The next lines, perhaps none yet; None at the end."""
        if self._waits:
            self._wait()
        if self._over():
            return None
        chunk = os.read(self._descriptor, CHUNK_BYTES)
        self.bytes_read += len(chunk)
        if chunk:
            return self._splitter.feed(chunk)
        return self._splitter.end() or None

    def _wait(self) -> None:
        readable = False

        def ready(events: int) -> None:
            nonlocal readable
            readable = True
            self._loop.watch(self._descriptor, 0, ready)

        try:
            self._loop.watch(self._descriptor, selectors.EVENT_READ, ready)
        except PermissionError:  # epoll refuses /dev/null and similar files, which are always ready
            self._waits = False
            return
        while not readable and not self._over():
            self._loop.run_once(60_000)
