"""Tables for people and JSON for programs."""

from collections.abc import Sequence

from quire.console.colour import Headings
from quire.console.printable import printable
from quire.console.terminal import echo, to_indented_json

Cell = str | int | None


def print_json(value: object) -> None:
    echo(to_indented_json(value))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns are as wide as their content; numbers are aligned to the right, and titles are bold at a terminal."""
    echo(format_table(titles, rows), headings=title_of(titles))


def title_of(*tables: Sequence[str]) -> Headings:
    """Recognises the first line of tables with these titles."""
    known = [" ".join(titles).upper().split() for titles in tables]
    return lambda line: line.split() in known


def format_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    texts = [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(titles), *texts]) for column in range(len(titles))]
    numeric = [
        any(isinstance(row[column], int) for row in rows)
        and all(row[column] is None or isinstance(row[column], int) for row in rows)
        for column in range(len(titles))
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join(line(row) for row in [[title.upper() for title in titles], *texts])


def numbers(values: Sequence[int]) -> str:
    """A list of node ids in one cell."""
    return ",".join(str(value) for value in values) or "-"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"


def some(names: Sequence[str], at_most: int = 5) -> str:
    """`a, b, c, d, e and 1,002 more`: names in a sentence."""
    shown = ", ".join(names[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most:,} more"
