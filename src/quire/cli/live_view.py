"""What `make run` shows, as text: a screen for a terminal, a line for anything else, and the sums at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

from quire.cli.live_figures import Figures
from quire.cli.output import count
from quire.cli.pipelines_view import view

BAR = 24
SHOWN_PRODUCTS = 8
SHOWN_ITEMS = 8
LEFT = 46

Status = Mapping[str, Any]


def screen(address: str, elapsed_s: float, figures: Figures, statuses: Mapping[str, Status]) -> str:
    """Sales and top products side by side, stock, dead letters, and the queries."""
    sales, products = _sales(figures), _products(figures)
    height = max(len(sales), len(products))
    pairs = zip(sales + [""] * (height - len(sales)), products + [""] * (height - len(products)), strict=True)
    parts = [
        f"Quire at {address}, {elapsed_s:.0f} s; Ctrl-C stops everything",
        "",
        *(f"{left:<{LEFT}}  {right}".rstrip() for left, right in pairs),
        "",
        f"sessions  {figures.sessions:,} ended",
        f"stock     {_stock(figures)}",
        f"dead      {_dead(figures)}",
    ]
    for name, status in statuses.items():
        parts += ["", name, view(status.get("queries", []))]
    return "\n".join(parts)


def line(elapsed_s: float, figures: Figures, statuses: Mapping[str, Status]) -> str:
    last = figures.sales[-1] if figures.sales else None
    best = figures.top.get("products", [])
    lags = [query["lag"] for status in statuses.values() for query in status.get("queries", [])]
    parts = [
        "no sales yet" if last is None else f"sales at {clock(last['start'])}: {_sold(last)}",
        "no top product yet" if not best else f"top product {best[0]['product_id']} ({best[0]['views']} views)",
        f"stock {_stock(figures)}",
        f"lag {sum(lag for lag in lags if lag is not None):,}" if lags else "Spark is starting",
        count(figures.dead_letters.total(), "dead letter"),
    ]
    return f"{elapsed_s:4.0f} s  {'; '.join(parts)}"


def _sales(figures: Figures) -> list[str]:
    most = max((window["revenue_cents"] for window in figures.sales), default=1) or 1
    rows = [
        f"{clock(window['start'])}  {window['orders']:>3}  {money(window['revenue_cents']):>9}  "
        f"{'#' * (BAR * window['revenue_cents'] // most)}"
        for window in figures.sales
    ]
    five = figures.last_5m
    total = [f"5 min to {clock(five['end'])}: {_sold(five)}"] if five else []
    return ["SALES PER MINUTE", *(rows or ["none yet: the first minute must be over"]), *total]


def _products(figures: Figures) -> list[str]:
    if not figures.top:
        return ["TOP PRODUCTS", "none yet"]
    products = figures.top["products"][:SHOWN_PRODUCTS]
    most = max(product["views"] for product in products)
    return [
        f"TOP PRODUCTS, {clock(figures.top['start'])} to {clock(figures.top['end'])}",
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
    return f"{count(figures.dead_letters.total(), 'letter')}: {reasons}"


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


def still_to_come(statuses: Sequence[Status], pipelines: int) -> str:
    """What the end waits for."""
    left = waiting_for(statuses)
    if left is None or len(statuses) < pipelines:
        return "Spark is still starting"
    return f"{count(left, 'record')} still to be read"


def waiting_for(statuses: Sequence[Status]) -> int | None:
    """How many offsets are still to be read by the queries; None while one has not begun."""
    lags: list[int | None] = [query["lag"] for status in statuses for query in status.get("queries", [])]
    known = [lag for lag in lags if lag is not None]
    begun = bool(lags) and len(known) == len(lags) and not any(status["to_start"] for status in statuses)
    return sum(known) if begun else None
