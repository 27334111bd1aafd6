"""The shop's results, computed the simple way: one event at a time, in Python."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

MINUTE = timedelta(minutes=1)
PAUSE = timedelta(minutes=10)
Event = dict[str, Any]
Result = dict[str, Any]


def time_of(event: Event) -> datetime:
    return datetime.fromisoformat(event["event_time"])


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def window_of(moment: datetime, minutes: int) -> datetime:
    return moment.replace(minute=moment.minute - moment.minute % minutes, second=0, microsecond=0)


def sales(events: Iterable[Event], minutes: int, until: datetime) -> list[Result]:
    """Windows of so many minutes, one beginning every minute, that are over."""
    sums: dict[datetime, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event["kind"] == "purchase_completed":
            for back in range(minutes):
                start = window_of(time_of(event), 1) - back * MINUTE
                sums[start].update(
                    orders=1, items=event["quantity"], revenue_cents=event["quantity"] * event["price_cents"]
                )
    return [
        {"start": text(start), "end": text(start + minutes * MINUTE), **total}
        for start, total in sorted(sums.items())
        if start + minutes * MINUTE <= until
    ]


def top_products(events: Iterable[Event], until: datetime) -> list[Result]:
    views: dict[datetime, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event["kind"] == "product_viewed":
            views[window_of(time_of(event), 5)][event["product_id"]] += 1
    return [
        {
            "start": text(start),
            "end": text(start + 5 * MINUTE),
            "views": seen.total(),
            "products": [
                {"product_id": product, "views": number}
                for product, number in sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:10]
            ],
        }
        for start, seen in sorted(views.items())
        if start + 5 * MINUTE <= until
    ]


def sessions(events: Sequence[Event], until: datetime) -> list[Result]:
    found: list[list[Event]] = []
    for event in sorted(events, key=lambda event: (event["user_id"], time_of(event))):
        last = found[-1][-1] if found else None
        if last is None or last["user_id"] != event["user_id"] or time_of(event) >= time_of(last) + PAUSE:
            found.append([])
        found[-1].append(event)
    return [
        {
            "user_id": session[0]["user_id"],
            "start": text(time_of(session[0])),
            "end": text(time_of(session[-1]) + PAUSE),
            "events": len(session),
            "views": sum(event["kind"] == "product_viewed" for event in session),
            "purchases": sum(event["kind"] == "purchase_completed" for event in session),
            "revenue_cents": sum(
                event["quantity"] * event["price_cents"] for event in session if event["kind"] == "purchase_completed"
            ),
        }
        for session in found
        if time_of(session[-1]) + PAUSE <= until
    ]
