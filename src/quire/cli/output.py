"""Tables for people and JSON for programs."""

from collections.abc import Sequence

from quire.cli.printable import printable
from quire.cli.terminal import echo, to_indented_json

Cell = str | int | None


def print_json(value: object) -> None:
    echo(to_indented_json(value))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns as wide as their content; numbers to the right, as people compare them."""
    echo(format_table(titles, rows))


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
