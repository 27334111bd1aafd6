"""A live view: the same thing shown again and again, until Ctrl-C.

At a terminal each view takes the place of the one before; into a pipe or a file they follow each other. What fails is
said in place of the view, and tried again: whoever watches wants to see it come back.
"""

import sys
from collections.abc import Callable
from shutil import get_terminal_size

from quire.cli.failures import explain
from quire.cli.printable import printable
from quire.cli.terminal import draw, echo
from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.steps import sleep

HOME = "\x1b[H"
CLEAR = "\x1b[2J"
REST_OF_LINE = "\x1b[K"
REST_OF_SCREEN = "\x1b[J"
CUT = "..."


def watch(client: BlockingClient, look: Callable[[], str], interval_s: float) -> None:
    """Shows what `look` returns every so many seconds. If the first look fails, there is nothing to watch."""
    view = look()
    if sys.stdout.isatty():
        clear_screen()
    while True:
        if sys.stdout.isatty():
            show_screen(view)
        else:
            echo(view)
        sys.stdout.flush()
        client.run(sleep(client.cluster.clock, interval_s * 1000))
        try:
            view = look()
        except (ApiError, ClientError) as error:
            view = explain(error).message


def clear_screen() -> None:
    draw(CLEAR)


def show_screen(view: str) -> None:
    """In place of the one before."""
    draw(fit(view, *get_terminal_size()))


def fit(view: str, columns: int, rows: int) -> str:
    """The view for a screen of this size, written over the one before, with what does not fit left out.

    A line that is cut says so: half a number must not be taken for a whole one.
    """
    # Escaped before it is cut: what is shown is longer than what was said.
    lines = [printable(line) for line in view.split("\n")]
    if len(lines) >= rows:
        lines = [*lines[: rows - 2], f"... {len(lines) - rows + 2} more lines"]
    return HOME + "".join(f"{_cut(line, columns)}{REST_OF_LINE}\n" for line in lines) + REST_OF_SCREEN


def _cut(line: str, columns: int) -> str:
    return line if len(line) <= columns else line[: max(0, columns - len(CUT))] + CUT
