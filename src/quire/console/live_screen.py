"""A live view: refreshed until Ctrl-C.

At a terminal each refresh replaces the one before; in a pipe or a file they follow each other. An error is shown in
place of the view, and the next refresh tries again, so that the view recovers with the cluster.
"""

import sys
from collections.abc import Callable
from shutil import get_terminal_size

from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.console.colour import Headings, Style, in_colour, paint
from quire.console.explain import explain
from quire.console.printable import printable
from quire.console.terminal import draw, echo
from quire.protocol.errors import ApiError
from quire.steps import sleep

HOME = "\x1b[H"
CLEAR = "\x1b[2J"
REST_OF_LINE = "\x1b[K"
REST_OF_SCREEN = "\x1b[J"
CUT = "..."


def watch(
    client: BlockingClient, look: Callable[[], str], interval_s: float, headings: Headings = lambda line: False
) -> None:
    """Shows what `look` returns, every `interval_s` seconds. An error of the first call is raised."""
    view = look()
    if sys.stdout.isatty():
        clear_screen()
    while True:
        if sys.stdout.isatty():
            show_screen(view, lambda line: paint(line, Style.HEADING) if headings(line) else line)
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


def show_screen(view: str, colour: Callable[[str], str] = str) -> None:
    """Replaces the previous view; `colour` paints a line, where the terminal shows colours."""
    columns, rows = get_terminal_size()
    draw(fit(view, columns, rows, colour if in_colour(sys.stdout) else str))


def fit(view: str, columns: int, rows: int, colour: Callable[[str], str] = str) -> str:
    """The view for a screen of this size; it overwrites the previous one, and what does not fit is left out.

    A line that is cut ends with dots, so that half a number is not read as a whole one.
    """
    # Escaped before it is cut, because escapes make lines longer.
    lines = [printable(line) for line in view.split("\n")]
    if len(lines) >= rows:
        lines = [*lines[: rows - 2], f"... {len(lines) - rows + 2} more lines"]
    return HOME + "".join(f"{colour(_cut(line, columns))}{REST_OF_LINE}\n" for line in lines) + REST_OF_SCREEN


def _cut(line: str, columns: int) -> str:
    return line if len(line) <= columns else line[: max(0, columns - len(CUT))] + CUT
