"""Lines out of a file or a pipe, as bytes, without ever waiting where the client's events would have to wait too."""

import os
import selectors
import stat

from quire.cli.line_splitter import LineSplitter
from quire.client.shell_loop import BlockingLoop

CHUNK_BYTES = 256 * 1024


class LineSource:
    """Reads chunks of lines from a descriptor. On a pipe or terminal the loop runs until there is something to read."""

    def __init__(self, loop: BlockingLoop, descriptor: int) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._splitter = LineSplitter()
        self._waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
        self.bytes_read = 0

    def read(self) -> list[bytes] | None:
        """The next lines, perhaps none yet; None at the end."""
        if self._waits:
            self._wait()
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
        except PermissionError:  # /dev/null and the like are always ready, and epoll refuses them
            self._waits = False
            return
        while not readable:
            self._loop.run_once(60_000)
