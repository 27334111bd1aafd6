"""Lines on standard input that tell a node to misbehave, for `quire.testing`; when the input ends, the node stops.

    fail_next API ERROR COUNT    the next COUNT requests of API are answered with ERROR and not carried out
    delay API MILLISECONDS       every answer to API waits from now on; 0 ends that
    clear                        ends both

Each line is answered on standard output with `ok`, or with `error:` and a sentence.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from quire.cli.line_splitter import LineSplitter
from quire.cli.serve import NodeFailedError
from quire.cli.terminal import echo
from quire.node.faults import Faults
from quire.node.node import Node
from quire.protocol.apis import API_NAMES
from quire.protocol.errors import ErrorCode


class UnknownControlError(Exception):
    """A line that is no control line."""


def carry_out(faults: Faults, line: str) -> None:
    """Does what one line says; UnknownControlError for what is not a control line."""
    try:
        match line.split():
            case ["fail_next", api, error, count]:
                faults.fail_next(_api(api), _error(error), int(count))
            case ["delay", api, milliseconds]:
                faults.delay(_api(api), int(milliseconds))
            case ["clear"]:
                faults.clear()
            case _:
                raise UnknownControlError(f"{line!r} is neither fail_next, delay nor clear")
    except ValueError as error:
        raise UnknownControlError(f"{line!r} ends with what is no number") from error


def _api(name: str) -> str:
    if name not in API_NAMES.values():
        raise UnknownControlError(f"there is no API {name!r}{_perhaps(name, API_NAMES.values())}")
    return name


def _error(name: str) -> str:
    if name not in ErrorCode.__members__:
        raise UnknownControlError(f"there is no error {name!r}{_perhaps(name, ErrorCode.__members__)}")
    return name


def _perhaps(name: str, known: Iterable[str]) -> str:
    nearest = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), list(nearest), n=1)
    return f"; perhaps {nearest[found[0]]} is meant" if found else ""


def obey_stdin(loop: asyncio.AbstractEventLoop, node: Node, stop: Callable[[], None]) -> None:
    """Reads control lines while the node runs, and stops it when there will be no more."""
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
            try:
                carry_out(faults, line.decode(errors="replace"))
                answer = "ok"
            except UnknownControlError as error:
                answer = f"error: {error}"
            echo(answer)
            sys.stdout.flush()

    try:
        loop.add_reader(descriptor, read)
    except PermissionError as error:
        raise NodeFailedError("--control-stdin needs a pipe on standard input.") from error
