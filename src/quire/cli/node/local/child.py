"""One node of a local cluster as a forked process, and what it prints.

A fork starts faster than a new interpreter and shares its memory: everything is imported once, in the supervisor. The
supervisor has no threads and no event loop that a fork could harm. The child leads a session of its own, so that Ctrl-C
reaches only the supervisor, and is killed when the supervisor ends.
"""

import os
import selectors
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from quire.cli.line_splitter import LineSplitter
from quire.cli.node.local.plan import PlannedNode
from quire.cli.node.parent import die_with_parent, set_process_name
from quire.cli.node.serve import LEAVE_WITHOUT_CONTROLLER, NodeFailedError, run_node
from quire.client.shell_loop import BlockingLoop
from quire.console.failure import EXIT_FAILED

_STOPPING = (signal.SIGINT, signal.SIGTERM)
_READ_BYTES = 65_536


class NodeChild:
    """`printed` gets each line of its log; `ready` its address; `ended` its exit code, negative for a signal."""

    def __init__(
        self,
        node: PlannedNode,
        loop: BlockingLoop,
        *,
        printed: Callable[["NodeChild", str], None],
        ready: Callable[["NodeChild"], None],
        ended: Callable[["NodeChild", int], None],
        forked: Callable[[], None],
    ) -> None:
        """`forked` is called in the new process, to close what belongs to the supervisor."""
        self.node = node
        self.pid: int | None = None
        self.address: str | None = None
        """Its address for clients, while it serves."""
        self.last_line = ""
        self._loop = loop
        self._printed = printed
        self._ready = ready
        self._ended = ended
        self._forked = forked
        self._open_pipes = 0

    @property
    def name(self) -> str:
        return self.node.name

    def start(self) -> None:
        assert self.pid is None, f"{self.name} runs"
        sys.stdout.flush()
        sys.stderr.flush()
        out, its_out = os.pipe()
        log, its_log = os.pipe()
        parent_pid = os.getpid()
        # A signal to the child would be lost in the handlers that it inherits: it waits until these are gone.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        pid = os.fork()
        if pid == 0:
            os.close(out)
            os.close(log)
            self._forked()
            _be_node(self.node, parent_pid, its_out, its_log)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(its_out)
        os.close(its_log)
        self.pid = pid
        self.last_line = ""
        self._open_pipes = 2
        self._follow(out, self._line_printed)
        self._follow(log, self._logged)

    def signal(self, number: int) -> None:
        """Does nothing if the node does not run."""
        if self.pid is not None:
            os.kill(self.pid, number)

    def _follow(self, pipe: int, got: Callable[[str], None]) -> None:
        splitter = LineSplitter()

        def read(_events: int) -> None:
            chunk = os.read(pipe, _READ_BYTES)
            lines = splitter.feed(chunk) if chunk else splitter.end()
            for line in lines:
                got(line.decode(errors="replace"))
            if not chunk:
                self._loop.watch(pipe, 0, read)
                os.close(pipe)
                self._closed()

        self._loop.watch(pipe, selectors.EVENT_READ, read)

    def _line_printed(self, line: str) -> None:
        if line.startswith("ready "):
            self.address = line.removeprefix("ready ")
            self._ready(self)
        else:
            self._printed(self, line)

    def _logged(self, line: str) -> None:
        self.last_line = line
        self._printed(self, line)

    def _closed(self) -> None:
        """Both pipes end only with the process, so everything that it has printed is here before its exit code."""
        self._open_pipes -= 1
        if self._open_pipes == 0:
            assert self.pid is not None
            _, status = os.waitpid(self.pid, 0)
            self.pid = self.address = None
            self._ended(self, os.waitstatus_to_exitcode(status))


def _be_node(node: PlannedNode, parent_pid: int, out: int, log: int) -> NoReturn:
    """Runs the node and ends the process, whatever happens: the caller's frames belong to the supervisor."""
    code = EXIT_FAILED
    try:
        signal.set_wakeup_fd(-1)
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        signal.signal(LEAVE_WITHOUT_CONTROLLER, signal.SIG_IGN)  # until the node can leave
        os.setsid()
        die_with_parent(parent_pid)
        set_process_name(f"quire {node.name}")
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, standard in ((nothing, 0), (out, 1), (log, 2)):
            os.dup2(descriptor, standard)
            os.close(descriptor)
        code = _run(node)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(node: PlannedNode) -> int:
    import traceback

    from quire.console.terminal import echo

    def announce(address: str) -> None:
        echo(f"ready {address}")
        sys.stdout.flush()

    try:
        run_node(node.config, announce, supervised=True)
    except NodeFailedError as error:
        echo(f"quire: {error}", err=True)
        return EXIT_FAILED
    except BaseException:
        traceback.print_exc()
        return EXIT_FAILED
    return 0
