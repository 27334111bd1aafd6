"""The shop from its events to its results, on a real Quire and a real Spark, compared with a simple model."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from quire.spark.dead_letters import read_headers
from quire.testing import Cluster
from quire_samples.shop.events import TOPICS, Kind, Shares, ShopEvent, ShopEvents
from tests.spark.shop import model
from tests.spark.shop.running import Shop, fields

START_MS = 1_790_000_000_000
STEP_MS = 600
DEAD_LETTERS = tuple(f"{topic}.dlq" for topic in TOPICS)


def by_start(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(results, key=lambda result: (result["start"], result.get("user_id", "")))


def by_id(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    written_alike = [event | {"event_time": model.text(model.time_of(event))} for event in events]
    return sorted(written_alike, key=lambda event: str(event["event_id"]))


def test_every_event_is_accounted_for_and_every_result_is_what_the_model_says(
    spark: SparkSession, fresh_quire_cluster: Cluster, tmp_path: Path
) -> None:
    shop = Shop(spark, fresh_quire_cluster.bootstrap_servers, tmp_path)
    made = ShopEvents(random.Random(5), Shares(bots=0.1, late=0.05, duplicates=0.05, broken=0.03))
    waves: list[list[ShopEvent]] = []
    for wave in range(2):
        waves.append([made.next(START_MS + STEP_MS * (1500 * wave + index)) for index in range(1500)])
        shop.send(waves[-1])
        tallies = shop.run()
    events = waves[0] + waves[1]

    # Nothing in the first wave is late, because there is no watermark yet; in the second, all intended events are.
    late = sum(event.kind == Kind.LATE for event in waves[1])
    counted = [event for event in events if event.kind == Kind.GOOD] + [
        event for event in waves[0] if event.kind == Kind.LATE
    ]
    clean = tallies["clean"]
    assert clean.accounts() == {
        "counted": len(counted),
        "bots": made.counts[Kind.BOT],
        "dead_letters": made.counts[Kind.BROKEN],
        "duplicates": made.counts[Kind.DUPLICATE],
        "late": late,
    }
    assert min(clean.accounts().values()) > 0
    assert clean.rows == len(events) and clean.adds_up

    assert by_id(shop.results("shop_events")) == by_id(fields(counted))
    letters = shop.records(*DEAD_LETTERS)
    broken = [event for event in events if event.kind == Kind.BROKEN]
    assert sorted((letter.key or b"", letter.value or b"") for letter in letters) == sorted(
        (event.key, event.value or b"") for event in broken
    )

    lake = shop.lake()
    assert len(lake) == len({(row["topic"], row["partition"], row["offset"]) for row in lake}) == len(events)
    assert sorted(row["value"] or b"" for row in lake) == sorted(event.value or b"" for event in events)

    assert tallies["results"].rows == len(counted) and tallies["results"].late == 0
    until = datetime.fromisoformat(shop.reports["results"].watermark)
    expected = fields(counted)
    assert until == max(map(model.time_of, expected)) - timedelta(minutes=5)
    assert by_start(shop.results("sales_per_minute")) == model.sales(expected, 1, until)
    assert by_start(shop.results("sales_5m")) == model.sales(expected, 5, until)
    assert by_start(shop.results("top_viewed_products")) == model.top_products(expected, until)
    assert by_start(shop.results("sessions")) == by_start(model.sessions(expected, until))


def event(number: int, time: str, topic: str = "purchase_completed", **changes: Any) -> ShopEvent:
    content = {
        "event_id": f"e-{number}",
        "event_time": f"2026-05-01T{time}Z",
        "user_id": "anna",
        "agent": "Mozilla/5.0",
        "product_id": "atlas-a4",
        "price_cents": 100,
        "quantity": 1,
        "order_id": f"o-{number}",
    }
    kept = {name: value for name, value in (content | changes).items() if value is not ...}
    return ShopEvent(topic, b"anna", json.dumps(kept).encode(), Kind.GOOD)


def raw(value: bytes | None, key: bytes = b"anna") -> ShopEvent:
    return ShopEvent("purchase_completed", key, value, Kind.BROKEN)


def test_edges_of_windows_watermarks_drifting_schemas_and_poison(
    spark: SparkSession, fresh_quire_cluster: Cluster, tmp_path: Path
) -> None:
    shop = Shop(spark, fresh_quire_cluster.bootstrap_servers, tmp_path)
    shop.send(
        [
            event(1, "10:00:59.999"),  # the last of a minute
            event(2, "10:01:00.000", price_cents=10),  # the first of the next
            event(3, "10:01:30.000", price_cents=20, vouchers=[{"code": "x"}]),  # a field that is new
            event(4, "10:20:00.000"),  # moves the watermark of `clean` to 10:18
        ]
    )
    shop.run()
    poison = {
        "rule has_a_quantity does not hold": event(30, "10:20:01", quantity=...),
        "rule is_not_from_the_future does not hold": event(31, "10:20:01", event_time="2999-01-01T00:00:00Z"),
        "the value is not UTF-8": raw(b"\xff\xff"),
        "the value is null": raw(None),
        "the value is not JSON of the expected shape": event(
            32, "10:20:01", price_cents="12.50"
        ),  # a type that changed
        "rule has_a_user does not hold": event(33, "10:20:01", user_id=None),
    }
    shop.send(
        [
            event(1, "10:00:59.999"),  # both a duplicate and late: late
            event(4, "10:20:00.000"),  # a duplicate of an earlier batch
            event(5, "10:18:00.000"),  # at the watermark: late
            event(6, "10:18:00.001"),  # just not late
            event(7, "10:20:02", "product_viewed", agent="TestBot/1.0", quantity=..., order_id=...),
            event(8, "10:20:03", agent=...),  # without an agent: not a bot
            *poison.values(),
            event(9, "11:00:00.000"),  # ends all windows before
        ]
    )
    tallies = shop.run()
    assert tallies["clean"].accounts() == {
        "counted": 7,
        "bots": 1,
        "dead_letters": len(poison),
        "duplicates": 1,
        "late": 2,
    }
    assert tallies["clean"].adds_up
    assert sorted(read_headers(letter.headers).error for letter in shop.records(*DEAD_LETTERS)) == sorted(poison)
    sold = {result["start"][11:16]: result["revenue_cents"] for result in shop.results("sales_per_minute")}
    assert sold == {"10:00": 100, "10:01": 30, "10:18": 100, "10:20": 200}
    five = {result["start"][11:16]: result["orders"] for result in shop.results("sales_5m")}
    first = {"09:56": 1, "09:57": 3, "09:58": 3, "09:59": 3, "10:00": 3, "10:01": 2}
    second = {"10:14": 1, "10:15": 1, "10:16": 3, "10:17": 3, "10:18": 3, "10:19": 2, "10:20": 2}
    assert five == first | second
    # 10:01:30 to 10:18:00.001 is a pause of more than ten minutes.
    assert [result["events"] for result in by_start(shop.results("sessions"))] == [3, 3]
