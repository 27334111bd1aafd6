"""What `make run` shows, as text: a screen for a terminal, a line for anything else, and the sums at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

from quire.cli.live_figures import Figures
from quire.cli.output import count
from quire.cli.pipelines_view import begun, view

BAR = 16  # so that both columns fit a terminal of 80
SHOWN_PRODUCTS = 8
SHOWN_ITEMS = 8
LEFT = 39

Status = Mapping[str, Any]


def screen(address: str, elapsed_s: float, speed: float, figures: Figures, statuses: Mapping[str, Status]) -> str:
    """Sales and top products side by side, stock, dead letters, and the queries."""
    sales, products = _sales(figures), _products(figures)
    height = max(len(sales), len(products))
    pairs = list(zip(sales + [""] * (height - len(sales)), products + [""] * (height - len(products)), strict=True))
    width = max(LEFT, *(len(left) for left, right in pairs if right))
    parts = [
        f"Quire at {address}, {elapsed_s:.0f} s; Ctrl-C stops everything",
        pace(speed),
        "",
        *(f"{left:<{width}}  {right}".rstrip() for left, right in pairs),
        "",
        f"sessions  {figures.sessions:,} ended{_of_earlier_runs(figures.earlier_sessions)}",
        f"stock     {_stock(figures)}",
        f"dead      {_dead(figures)}",
    ]
    for name, status in statuses.items():
        parts += ["", name, view(status)]
    return "\n".join(parts)


def pace(speed: float) -> str:
    return f"Times of day are the shop's, whose clock runs {speed:g} times as fast"


def line(elapsed_s: float, figures: Figures, statuses: Mapping[str, Status]) -> str:
    last = figures.sales[-1] if figures.sales else None
    best = figures.top.get("products", [])
    parts = [
        "no sales yet" if last is None else f"sales at {clock(last['start'])}{_mark(last)}: {_sold(last)}",
        "no top product yet"
        if not best
        else f"top product {best[0]['product_id']} ({best[0]['views']} views){_mark(figures.top)}",
        f"stock {_stock(figures)}",
        _lag(statuses),
        count(figures.dead_letters.total(), "dead letter") + _of_earlier_runs(figures.earlier_dead_letters),
    ]
    return f"{elapsed_s:4.0f} s  {'; '.join(parts)}"


def _lag(statuses: Mapping[str, Status]) -> str:
    queries, starting = by_name(statuses)
    if not queries:
        return "queries are starting" if starting else "Spark is starting"
    lag = f"lag {sum(query['lag'] or 0 for query in queries.values()):,}"
    return f"{lag}, {len(starting)} of {len(queries) + len(starting)} queries are starting" if starting else lag


def by_name(statuses: Mapping[str, Status]) -> tuple[dict[str, Status], list[str]]:
    """The queries of all pipelines that have begun, and the names of the others."""
    found = {f"{name}.{query['name']}": query for name, status in statuses.items() for query in status["queries"]}
    waiting = [f"{name}.{query}" for name, status in statuses.items() for query in status["starting"]]
    there = {name: query for name, query in found.items() if begun(query)}
    return there, [name for name in found if name not in there] + waiting


def _mark(window: Mapping[str, Any]) -> str:
    return " (earlier run)" if window["earlier"] else ""


def _of_earlier_runs(number: int) -> str:
    return f", {number:,} of them in earlier runs" if number else ""


def _sales(figures: Figures) -> list[str]:
    most = max((window["revenue_cents"] for window in figures.sales), default=1) or 1
    rows = [
        f"{clock(window['start'])}  {window['orders']:>3}  {money(window['revenue_cents']):>9} "
        + (_mark(window) or f" {'#' * (BAR * window['revenue_cents'] // most)}")
        for window in figures.sales
    ]
    five = figures.last_5m
    total = [f"5 min to {clock(five['end'])}{_mark(five)}: {_sold(five)}"] if five else []
    return ["SALES PER MINUTE", *(rows or ["none yet: the first minute must be over"]), *total]


def _products(figures: Figures) -> list[str]:
    if not figures.top:
        return ["TOP PRODUCTS", "none yet"]
    products = figures.top["products"][:SHOWN_PRODUCTS]
    most = max(product["views"] for product in products)
    return [
        f"TOP PRODUCTS {clock(figures.top['start'])}-{clock(figures.top['end'])}{_mark(figures.top)}",
        *(
            f"{product['product_id']:<14}  {product['views']:>3}  {'#' * (BAR * product['views'] // most)}"
            for product in products
        ),
    ]


def _stock(figures: Figures) -> str:
    if not figures.stock:
        return "nothing yet"
    lowest = sorted(figures.stock.items(), key=lambda item: (item[1], item[0]))[:SHOWN_ITEMS]
    named = ", ".join(f"{item} {level}" for item, level in lowest)
    return f"{count(len(figures.stock), 'item')}, {sum(figures.stock.values()):,} pieces; lowest: {named}"


def _dead(figures: Figures) -> str:
    if not figures.dead_letters:
        return "no letters"
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in figures.dead_letters.most_common(3))
    earlier = _of_earlier_runs(figures.earlier_dead_letters)
    return f"{count(figures.dead_letters.total(), 'letter')}{earlier}: {reasons}"


def summary(sent: int, clean: Status) -> tuple[list[str], bool]:
    """Where the events of this run went, and whether it adds up; `clean` is the status of the query that cleans."""
    run = clean["this_run"]
    accounts = run["counts"] | {"duplicates": run["duplicates"], "late": run["late"]}
    total = sum(accounts.values())
    named = " + ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in accounts.items())
    adds_up = total == run["rows"] and not run["missed"]
    lines = [f"{run['rows']:,} events in {'=' if adds_up else 'IS NOT'} {named}"]
    if run["rows"] != sent:
        lines.append(f"(the generator sent {sent:,}; the others were there before, or are still to be read)")
    if run["missed"]:
        lines.append(f"({count(run['missed'], 'batch', 'batches')} were not told of, so the sum is not whole)")
    return lines, adds_up


def _sold(window: Mapping[str, Any]) -> str:
    return f"{count(window['orders'], 'order')}, {money(window['revenue_cents'])}"


def money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02}"


def clock(moment: str) -> str:
    """The time of day in an ISO time."""
    return moment[11:16]


def still_to_come(statuses: Mapping[str, Status]) -> str:
    """What the end waits for."""
    queries, starting = by_name(statuses)
    if not queries and not starting:
        return "Waiting for Spark, which is starting"
    left = [
        f"{name} ({'its lag is unknown' if query['lag'] is None else count(query['lag'], 'record') + ' to read'})"
        for name, query in queries.items()
        if query["lag"] != 0
    ]
    left += [f"{name} (starting)" for name in starting]
    return f"Waiting for {', '.join(left)}" if left else "Everything is read; making sure that nothing comes after it"


def waiting_for(statuses: Sequence[Status]) -> int | None:
    """How many offsets are still to be read by the queries; None while one has not begun."""
    lags: list[int | None] = [query["lag"] for status in statuses for query in status["queries"]]
    known = [lag for lag in lags if lag is not None]
    all_known = bool(lags) and len(known) == len(lags) and not any(status["starting"] for status in statuses)
    return sum(known) if all_known else None
