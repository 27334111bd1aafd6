"""The status of pipelines as a table, from the status.json that `quire pipelines run` writes."""

from collections.abc import Mapping
from typing import Any

from quire.console.output import Cell, format_table

TITLES = ("query", "rows/s", "rows", "lag", "batch", "state", "late", "duplicates", "dead letters", "watermark")
STARTING = "starting"


def view(status: Mapping[str, Any], running: bool = True) -> str:
    """All queries of the pipeline, including those that have not started."""
    others = (None,) * (len(TITLES) - 2)
    starting = [(name, STARTING if running else "not started", *others) for name in status.get("starting", [])]
    return format_table(TITLES, [*(_row(query, running) for query in status["queries"]), *starting])


def begun(query: Mapping[str, Any]) -> bool:
    """Whether the query has done a batch, in this run or in an earlier one."""
    return query["batch_ms"] is not None or query["lag"] is not None


def line(pipeline: str, query: dict[str, Any]) -> str:
    """One line for a query, for output that is not a terminal."""
    lag = "unknown" if query["lag"] is None else f"{query['lag']:,}"
    if query["batch_ms"] is None:
        return f"{pipeline}.{query['name']}: no batch in this run yet, {query['rows']:,} rows before, lag {lag}"
    dead = query["counts"].get("dead_letters")
    parts = [
        f"{query['rows']:,} rows",
        f"{query['rows_per_second']:,.0f}/s",
        f"lag {lag}",
        f"batch {query['batch_ms']} ms",
        f"state {query['state_rows']:,} rows, {size(query['state_bytes'])}",
        *([] if dead is None else [f"{dead:,} dead letters"]),
    ]
    return f"{pipeline}.{query['name']}: {', '.join(parts)}"


def _row(query: dict[str, Any], running: bool) -> tuple[Cell, ...]:
    return (
        query["name"],
        STARTING if running and not begun(query) else f"{query['rows_per_second']:,.0f}",
        query["rows"],
        query["lag"],
        None if query["batch_ms"] is None else f"{query['batch_ms']} ms",
        f"{query['state_rows']:,} ({size(query['state_bytes'])})" if query["state_rows"] else None,
        query["late"],
        query["duplicates"],
        query["counts"].get("dead_letters"),
        query["watermark"] or None,
    )


def size(number: float) -> str:
    """A size in bytes with a readable unit."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"
