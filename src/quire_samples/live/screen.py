"""The output of `make run`: a screen for a terminal, lines for other outputs, and the sums at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

from quire.console.output import count
from quire.spark.status_table import begun, size, view
from quire_samples.live.figures import Figures
from quire_samples.live.node_figures import NodeFigures
from quire_samples.shop import events

BAR = 16  # so that both columns fit a terminal of 80 characters
SHOWN_PRODUCTS = 8
SHOWN_ITEMS = 8
SHOWN_REASONS = 3
LEFT = 39

Status = Mapping[str, Any]


def screen(
    address: str,
    elapsed_s: float,
    speed: float,
    figures: Figures,
    statuses: Mapping[str, Status],
    node: NodeFigures | None = None,
    brokers: Sequence[str] = (),
) -> str:
    """The node (of a cluster, also its `brokers`), sales and top products side by side, stock, letters, queries."""
    running, starting = by_name(statuses)
    sales, products = _sales(figures, spark_is_up=bool(running) or not starting), _products(figures)
    height = max(len(sales), len(products))
    pairs = list(zip(sales + [""] * (height - len(sales)), products + [""] * (height - len(products)), strict=True))
    width = max(LEFT, *(len(left) for left, right in pairs if right))
    parts = [
        f"Quire at {address}, {elapsed_s:.0f} s; Ctrl-C stops everything",
        pace(speed),
        "",
        "BROKER",
        *_node(node),
        *brokers,
        "",
        *(f"{left:<{width}}  {right}".rstrip() for left, right in pairs),
        "",
        "RESULTS",
        f"sessions      {figures.sessions:,} ended{_of_earlier_runs(figures.earlier_sessions)}",
        f"stock         {_stock(figures)}",
        f"dead letters  {_dead(figures)}",
    ]
    for name, status in statuses.items():
        parts += ["", f"{name.upper()} QUERIES", view(status)]
    return "\n".join(parts)


def pace(speed: float) -> str:
    return f"Times of day are the shop's, whose clock runs {speed:g} times as fast"


def _node(node: NodeFigures | None) -> list[str]:
    if node is None:
        return ["no figures yet"]
    sent = ", ".join(f"{node.records_by_topic.get(topic, 0):,} {topic}" for topic in events.TOPICS)
    return [_traffic(node), f"events: {sent}"]


def cluster_line(node: NodeFigures | None, brokers: int) -> str:
    if node is None:
        return f"{brokers} brokers"
    return (
        f"{node.brokers} of {brokers} brokers up; {node.fully_in_sync:,} of {count(node.partitions, 'partition')} "
        "with all replicas in sync"
    )


def _traffic(node: NodeFigures) -> str:
    parts = [f"{node.records:,} records"]
    if node.records_per_second is not None and node.bytes_per_second is not None:
        parts += [f"{node.records_per_second:,.0f} records/s", f"{node.bytes_per_second / 1e6:.2f} MB/s written"]
    if node.memory_bytes is not None:
        parts.append(f"{size(node.memory_bytes)} of memory")
    return ", ".join(parts)


def line(elapsed_s: float, figures: Figures, statuses: Mapping[str, Status], node: NodeFigures | None = None) -> str:
    last = figures.sales[-1] if figures.sales else None
    best = figures.top.get("products", [])
    parts = [
        *([] if node is None else [_traffic(node)]),
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
    """The queries of all pipelines that have started, and the names of the others."""
    found = {f"{name}.{query['name']}": query for name, status in statuses.items() for query in status["queries"]}
    waiting = [f"{name}.{query}" for name, status in statuses.items() for query in status["starting"]]
    there = {name: query for name, query in found.items() if begun(query)}
    return there, [name for name in found if name not in there] + waiting


def _mark(window: Mapping[str, Any]) -> str:
    return " (earlier run)" if window["earlier"] else ""


def _of_earlier_runs(number: int) -> str:
    return f", {number:,} of them in earlier runs" if number else ""


def _sales(figures: Figures, *, spark_is_up: bool) -> list[str]:
    most = max((window["revenue_cents"] for window in figures.sales), default=1) or 1
    rows = [
        f"{clock(window['start'])}  {window['orders']:>3}  {money(window['revenue_cents']):>9} "
        + (_mark(window) or f" {'#' * (BAR * window['revenue_cents'] // most)}")
        for window in figures.sales
    ]
    five = figures.last_5m
    total = [f"5 min to {clock(five['end'])}{_mark(five)}: {_sold(five)}"] if five else []
    why = "the first minute must be over" if spark_is_up else "Spark is starting"
    return ["SALES PER MINUTE", *(rows or [f"none yet: {why}"]), *total]


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
    """The total, and reasons whose numbers add up to it."""
    if not figures.dead_letters:
        return "none"
    total = figures.dead_letters.total()
    shown = figures.dead_letters.most_common(SHOWN_REASONS)
    reasons = [f"{number:,} {reason}" for reason, number in shown]
    if rest := total - sum(number for _, number in shown):
        reasons.append(f"{rest:,} for {count(len(figures.dead_letters) - len(shown), 'other reason')}")
    return f"{total:,}{_of_earlier_runs(figures.earlier_dead_letters)}: {' + '.join(reasons)}"


def summary(sent: int, clean: Status, *, drained: bool = False) -> tuple[list[str], bool]:
    """How the events of this run were counted, and whether that adds up; `clean` is the status of that query.

    `drained`: the query has read everything, so it must have at least what was sent.
    """
    run = clean["this_run"]
    accounts = run["counts"] | {"duplicates": run["duplicates"], "late": run["late"]}
    total = sum(accounts.values())
    named = " + ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in accounts.items())
    adds_up = total == run["rows"] and not run["missed"]
    lines = [f"{run['rows']:,} events in {'=' if adds_up else 'IS NOT'} {named}"]
    if run["rows"] != sent:
        lines.append(f"(the generator sent {sent:,}; the others were there before, or are still to be read)")
    if run["missed"]:
        lines.append(f"({count(run['missed'], 'batch', 'batches')} were not reported, so the sum is incomplete)")
    if drained and run["rows"] < sent:
        lines.append(f"({count(sent - run['rows'], 'event')} of those that were acknowledged ARE LOST)")
        adds_up = False
    return lines, adds_up


def _sold(window: Mapping[str, Any]) -> str:
    return f"{count(window['orders'], 'order')}, {money(window['revenue_cents'])}"


def money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02}"


def clock(moment: str) -> str:
    """The time of day in an ISO time."""
    return moment[11:16]


def still_to_come(statuses: Mapping[str, Status]) -> str:
    """What the stop is waiting for."""
    queries, starting = by_name(statuses)
    if not queries and not starting:
        return "Waiting for Spark, which is starting"
    left = [
        f"{name} ({'its lag is unknown' if query['lag'] is None else count(query['lag'], 'record') + ' to read'})"
        for name, query in queries.items()
        if query["lag"] != 0
    ]
    left += [f"{name} (starting)" for name in starting]
    return f"Waiting for {', '.join(left)}" if left else "Everything is read; checking that nothing more arrives"


def waiting_for(statuses: Sequence[Status]) -> int | None:
    """The number of offsets that the queries have not read yet; None if a query has not started."""
    lags: list[int | None] = [query["lag"] for status in statuses for query in status["queries"]]
    known = [lag for lag in lags if lag is not None]
    all_known = bool(lags) and len(known) == len(lags) and not any(status["starting"] for status in statuses)
    return sum(known) if all_known else None
