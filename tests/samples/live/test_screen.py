"""What `make run` shows: figures from records, and text from figures, without Spark and without a node."""

import json
import re
from collections.abc import Sequence
from typing import Any

from quire.protocol.records import Record
from quire.spark.status_table import line as query_line
from quire.spark.status_table import size, view
from quire_samples.live.colours import paint
from quire_samples.live.figures import KEPT_WINDOWS, SALES, SALES_5M, SESSIONS, STOCK, TOP, Figures
from quire_samples.live.node_figures import NodeFigures
from quire_samples.live.screen import BAR, clock, cluster_line, line, money, screen, still_to_come, summary, waiting_for


def record(headers: list[tuple[str, bytes | None]] | None = None, **value: Any) -> Record:
    return Record(0, 0, None, json.dumps(value).encode(), headers or [])


def sale(minute: int, orders: int = 2, revenue_cents: int = 1250) -> Record:
    start, end = f"2026-01-01T10:{minute:02}:00.000Z", f"2026-01-01T10:{minute + 1:02}:00.000Z"
    return record(start=start, end=end, orders=orders, items=orders, revenue_cents=revenue_cents)


def query(**changes: Any) -> dict[str, Any]:
    return {
        "name": "clean",
        "rows": 1200,
        "rows_per_second": 98.7,
        "lag": 12,
        "batch_ms": 640,
        "state_rows": 300,
        "state_bytes": 2048,
        "late": 5,
        "duplicates": 7,
        "counts": {"counted": 1100, "bots": 80, "dead_letters": 8},
        "watermark": "2026-01-01T10:00:00.000Z",
        "this_run": {
            "rows": 1200,
            "late": 5,
            "duplicates": 7,
            "missed": 0,
            "counts": {"counted": 1100, "bots": 80, "dead_letters": 8},
        },
    } | changes


def status(*queries: dict[str, Any], starting: Sequence[str] = ()) -> dict[str, Any]:
    return {"queries": list(queries), "starting": starting}


def full(earlier: bool = False) -> Figures:
    figures = Figures()
    for minute in (3, 1, 2):
        figures.take(SALES, sale(minute), earlier)
    five = record(start="2026-01-01T10:00", end="2026-01-01T10:05:00Z", orders=6, revenue_cents=3750)
    figures.take(SALES_5M, five, earlier)
    products = [{"product_id": "atlas-a4", "views": 9}, {"product_id": "diary-a6", "views": 3}]
    top = record(start="2026-01-01T10:00:00Z", end="2026-01-01T10:05:00Z", views=12, products=products)
    figures.take(TOP, top, earlier)
    figures.take(SESSIONS, record(user_id="anna"), earlier)
    for level in (7, 4):
        figures.take(STOCK, record(item="item-1", level=level), earlier)
    origin: list[tuple[str, bytes | None]] = [("dlq.topic", b"t"), ("dlq.partition", b"0"), ("dlq.offset", b"1")]
    figures.take("t.dlq", record([("dlq.error", b"rule x does not hold"), *origin]), earlier)
    return figures


def test_figures_keep_the_latest_windows_in_the_order_of_their_time() -> None:
    figures = Figures()
    for minute in (5, 3, 4, *range(10, 10 + KEPT_WINDOWS - 1)):
        figures.take(SALES, sale(minute))
    assert [clock(window["start"]) for window in figures.sales] == [
        "10:05",
        *(f"10:{minute}" for minute in range(10, 10 + KEPT_WINDOWS - 1)),
    ]
    assert figures.orders == 2 * (KEPT_WINDOWS + 2)


def test_an_older_window_that_comes_later_does_not_take_the_place_of_a_newer_one() -> None:
    figures = Figures()
    for start in ("2026-01-01T10:05", "2026-01-01T10:00"):
        figures.take(TOP, record(start=start, products=[]))
    assert figures.top["start"] == "2026-01-01T10:05"


def test_the_screen_has_sales_products_stock_dead_letters_and_queries() -> None:
    text = screen("127.0.0.1:9092", 61.2, 60, full(), {"shop": status(query(), starting=["archive"])})
    assert "whose clock runs 60 times as fast" in text
    assert "10:01    2      12.50" in text and text.index("10:01  ") < text.index("10:03  ")
    assert "5 min to 10:05: 6 orders, 37.50" in text
    assert "atlas-a4          9" in text
    assert "1 item, 4 pieces; lowest: item-1 4" in text
    assert "dead letters  1: 1 rule x does not hold" in text
    assert "clean    99        1200   12  640 ms  300 (2 KiB)" in text
    assert "archive  starting     -    -" in text


def test_the_second_column_is_aligned_with_the_fullest_bar_and_fits_a_small_terminal() -> None:
    lines = screen("127.0.0.1:9092", 61.2, 60, full(), {}).splitlines()
    title = next(index for index, text in enumerate(lines) if text.startswith("SALES"))
    column = lines[title].index("TOP PRODUCTS")
    assert "#" * BAR in lines[title + 1] and lines[title + 1][column - 2 :].startswith("  atlas-a4")
    assert max(map(len, lines[: title + 4])) <= 80


def test_rows_of_earlier_runs_are_marked() -> None:
    old = screen("127.0.0.1:9092", 61.2, 60, full(earlier=True), {})
    assert "10:01    2      12.50  (earlier run)" in old and "#" not in old.split("TOP PRODUCTS")[0]
    assert "5 min to 10:05 (earlier run): 6 orders" in old and "TOP PRODUCTS 10:00-10:05 (earlier run)" in old
    assert "1 ended, 1 of them in earlier runs" in old and "1, 1 of them in earlier runs: " in old
    assert "sales at 10:03 (earlier run): 2 orders" in line(61.2, full(earlier=True), {})
    assert full(earlier=True).results == 0
    assert "earlier" not in screen("127.0.0.1:9092", 61.2, 60, full(), {}) + line(61.2, full(), {})


def test_before_the_first_record_the_screen_says_that_it_waits() -> None:
    text = screen("127.0.0.1:9092", 1, 60, Figures(), {})
    assert "none yet: the first minute must be over" in text and "dead letters  none" in text and "nothing yet" in text
    assert "Spark is starting" in line(1, Figures(), {})
    assert "none yet: Spark is starting" in screen("x", 1, 60, Figures(), {"shop": status(starting=["clean"])})


def test_a_line_has_the_latest_of_everything() -> None:
    said = line(61.2, full(), {"shop": status(query(), query(name="results", lag=None))})
    assert "sales at 10:03: 2 orders, 12.50; top product atlas-a4 (9 views)" in said
    assert "lag 12; 1 dead letter" in said
    statuses = {"shop": status(starting=["clean", "archive"])}
    assert "; queries are starting; " in line(61.2, full(), statuses)
    first = status(query(name="results", lag=None, batch_ms=None))
    assert "lag 12, 2 of 3 queries are starting" in line(
        61.2, full(), {"shop": status(query(), starting=["a"]), "b": first}
    )


def test_the_reasons_of_dead_letters_add_up_to_their_number() -> None:
    figures = Figures()
    figures.dead_letters.update({"a": 5, "b": 4, "c": 3, "d": 2, "e": 1})
    assert "dead letters  15: 5 a + 4 b + 3 c + 3 for 2 other reasons" in screen("x", 1, 60, figures, {})


def test_the_node_has_figures_from_the_first_second_on() -> None:
    first = NodeFigures(1.0, {"product_viewed": 90, "add_to_cart": 10}, 1_000_000, 64 << 20)
    text = screen("x", 1, 60, Figures(), {}, first)
    assert "100 records, 64 MiB of memory\nevents: 90 product_viewed, 10 add_to_cart, 0 purchase_completed" in text
    later = NodeFigures(3.0, {"product_viewed": 300}, 2_500_000, 64 << 20).since(first)
    traffic = "300 records, 100 records/s, 0.75 MB/s written, 64 MiB of memory"
    assert traffic in screen("x", 3, 60, Figures(), {}, later) and traffic in line(3, Figures(), {}, later)
    assert NodeFigures(4.0).since(later).records_per_second == 0, "records were deleted"


def test_colours_leave_the_text_as_it_is() -> None:
    text = screen("127.0.0.1:9092", 61.2, 60, full(), {"shop": status(query())})
    painted = [paint(each) for each in text.splitlines()]
    assert [re.sub(r"\x1b\[\d+m", "", each) for each in painted] == text.splitlines()
    for heading in ("BROKER", "SALES PER MINUTE", "TOP PRODUCTS", "RESULTS", "SHOP QUERIES"):
        assert any(f"\x1b[1m\x1b[36m{heading}\x1b[0m" in each for each in painted), heading


def test_the_summary_adds_up_or_says_that_it_does_not() -> None:
    lines, adds_up = summary(1200, query())
    assert adds_up
    assert lines == ["1,200 events in = 1,100 counted + 80 bots + 8 dead letters + 7 duplicates + 5 late"]
    lines, adds_up = summary(1201, query())
    assert adds_up and "the generator sent 1,201" in lines[1]
    run = query()["this_run"]
    assert not summary(1200, query(this_run=run | {"rows": 1201}))[1]
    lines, adds_up = summary(1200, query(this_run=run | {"missed": 1}))
    assert not adds_up and "1 batch" in lines[-1]
    assert summary(1200, query(), drained=True)[1]
    lines, adds_up = summary(1203, query(), drained=True)
    assert not adds_up and "3 events of those that were acknowledged ARE LOST" in lines[-1]


def test_a_cluster_shows_its_brokers_and_what_happened_to_them() -> None:
    node = NodeFigures(1.0, brokers=2, partitions=25, fully_in_sync=3)
    said = [cluster_line(node, 3), "broker 1 was killed"]
    lines = screen("x", 1, 60, Figures(), {}, node, said).splitlines()
    at = lines.index("2 of 3 brokers up; 3 of 25 partitions with all replicas in sync")
    assert lines[at + 1 : at + 3] == ["broker 1 was killed", ""]
    assert cluster_line(None, 3) == "3 brokers"


def test_the_backlog_is_shown_once_every_query_has_begun() -> None:
    assert waiting_for([]) is None
    assert waiting_for([status(query()), status(starting=["archive"])]) is None
    assert waiting_for([status(query(lag=0), starting=["archive"])]) is None
    assert waiting_for([status(query(), query(lag=None))]) is None
    assert waiting_for([status(query(), query(lag=3)), status(query(lag=0))]) == 15


def test_the_end_says_what_it_waits_for() -> None:
    assert still_to_come({}) == "Waiting for Spark, which is starting"
    first = query(name="results", lag=None, batch_ms=None)
    shop = status(query(lag=1200), first, starting=["archive"])
    said = still_to_come({"shop": shop, "inventory": status(query(name="refusals", lag=0))})
    assert said == "Waiting for shop.clean (1,200 records to read), shop.results (starting), shop.archive (starting)"
    assert still_to_come({"shop": status(query(lag=None))}) == "Waiting for shop.clean (its lag is unknown)"
    assert still_to_come({"shop": status(query(lag=0))}).startswith("Everything is read")


def test_queries_are_shown_as_a_table_or_a_line_each() -> None:
    assert view(status(query(state_rows=0, lag=None, counts={}))).splitlines()[1].split()[:4] == [
        "clean",
        "99",
        "1200",
        "-",
    ]
    said = query_line("shop", query())
    assert said == "shop.clean: 1,200 rows, 99/s, lag 12, batch 640 ms, state 300 rows, 2 KiB, 8 dead letters"
    assert "lag unknown" in query_line("shop", query(lag=None))
    assert query_line("shop", query(batch_ms=None)) == "shop.clean: no batch in this run yet, 1,200 rows before, lag 12"
    assert " ms" not in view(status(query(batch_ms=None)))


def test_a_query_that_has_not_begun_is_shown_as_starting_while_its_pipeline_runs() -> None:
    some = status(query(lag=None, batch_ms=None, rows_per_second=0.0), starting=["archive"])
    assert [row.split()[:2] for row in view(some).splitlines()[1:]] == [["clean", "starting"], ["archive", "starting"]]
    rows = view(some, running=False).splitlines()[1:]
    assert [row.split()[:3] for row in rows] == [["clean", "0", "1200"], ["archive", "not", "started"]]


def test_sums_of_money_and_sizes_as_people_read_them() -> None:
    assert [money(cents) for cents in (0, 5, 1250, 123456789)] == ["0.00", "0.05", "12.50", "1,234,567.89"]
    assert [size(number) for number in (0, 2048, 5 << 20, 3 << 30)] == ["0 B", "2 KiB", "5 MiB", "3.0 GiB"]
