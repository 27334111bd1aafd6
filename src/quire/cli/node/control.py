"""Control through lines on standard input, for `quire.testing`. The node stops when the input ends.

    fail_next API ERROR COUNT    answer the next COUNT requests of API with ERROR, and do not execute them
    delay API MILLISECONDS       delay every response to API; 0 ends the delay
    uses                         how many requests each fault has affected since the last clear, in the order set
    clear                        end all faults
    leave                        if the node stops: do not wait for a controller, because the others stop too

The node answers each line but `leave` on standard output with `ok` (`ok 1 0` to `uses`), or with `error:` and a
sentence.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from quire.cli.line_splitter import LineSplitter
from quire.cli.node.serve import NodeFailedError
from quire.console.terminal import echo
from quire.node.faults import Faults
from quire.node.node import Node
from quire.protocol.apis import API_NAMES
from quire.protocol.errors import ErrorCode


class UnknownControlError(Exception):
    """The line is not a valid control line."""


def carry_out(faults: Faults, line: str) -> str:
    """Executes one control line and returns the answer; UnknownControlError if the line is not valid."""
    match line.split():
        case ["fail_next", api, error, count]:
            faults.fail_next(_api(api), _error(error), _number(count, at_least=1))
        case ["delay", api, milliseconds]:
            faults.delay(_api(api), _number(milliseconds, at_least=0))
        case ["uses"]:
            return " ".join(["ok", *map(str, faults.uses())])
        case ["clear"]:
            faults.clear()
        case _:
            raise UnknownControlError(f"{line!r} is neither fail_next, delay, uses nor clear")
    return "ok"


def _number(text: str, *, at_least: int) -> int:
    if not text.isdecimal() or int(text) < at_least:
        raise UnknownControlError(f"{text!r} is not a whole number of at least {at_least}")
    return int(text)


def _api(name: str) -> str:
    if name not in API_NAMES.values():
        raise UnknownControlError(f"there is no API {name!r}{_perhaps(name, API_NAMES.values())}")
    return name


def _error(name: str) -> str:
    if name == ErrorCode.NONE.name:
        raise UnknownControlError("NONE is not an error; name one, such as NOT_LEADER_OR_FOLLOWER")
    if name not in ErrorCode.__members__:
        raise UnknownControlError(f"there is no error {name!r}{_perhaps(name, ErrorCode.__members__)}")
    return name


def _perhaps(name: str, known: Iterable[str]) -> str:
    nearest = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), list(nearest), n=1)
    return f"; did you mean {nearest[found[0]]}?" if found else ""


def read_control_lines(
    loop: asyncio.AbstractEventLoop, node: Node, stop: Callable[[], None], leave_without_controller: Callable[[], None]
) -> None:
    """Reads control lines while the node runs, and stops the node when the input ends."""
    faults = node.faults = Faults()
    splitter = LineSplitter()
    descriptor = sys.stdin.fileno()
    os.set_blocking(descriptor, False)

    def read() -> None:
        try:
            chunk = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        if not chunk:
            loop.remove_reader(descriptor)
            stop()
            return
        for line in splitter.feed(chunk):
            if line.strip() == b"leave":
                leave_without_controller()
                continue
            try:
                answer = carry_out(faults, line.decode(errors="replace"))
            except UnknownControlError as error:
                answer = f"error: {error}"
            echo(answer)
            sys.stdout.flush()

    try:
        loop.add_reader(descriptor, read)
    except PermissionError as error:
        raise NodeFailedError("--control-stdin needs a pipe on standard input.") from error
