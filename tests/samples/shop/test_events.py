"""The shop's events: the same for the same random numbers and times, with known errors."""

import json
import random
from collections import Counter, defaultdict
from datetime import datetime

from quire_samples.shop.events import (
    LATE_MS,
    OUT_OF_ORDER_MS,
    PRODUCT_VIEWED,
    PURCHASE_COMPLETED,
    TOPICS,
    Kind,
    Shares,
    ShopEvent,
    ShopEvents,
)

START_MS = 1_700_000_000_000


def make(number: int, seed: int = 7, shares: Shares | None = None, name: str = "e") -> list[ShopEvent]:
    shop = ShopEvents(random.Random(seed), shares or Shares(), name)
    events = [shop.next(START_MS + 600 * index) for index in range(number)]
    assert shop.counts == {kind: sum(event.kind == kind for event in events) for kind in Kind}
    return events


def fields(event: ShopEvent) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(event.value or b"")
    return decoded


def time_ms(event: ShopEvent) -> float:
    return datetime.fromisoformat(str(fields(event)["event_time"])).timestamp() * 1000


def test_the_same_seed_and_times_make_the_same_events_and_another_seed_others() -> None:
    assert make(500) == make(500)
    assert make(500) != make(500, seed=8)


def test_every_event_is_keyed_by_its_user_and_there_are_some_on_every_topic() -> None:
    events = [event for event in make(1000) if event.kind != Kind.BROKEN]
    assert all(fields(event)["user_id"] == event.key.decode() for event in events)
    assert {event.topic for event in events} == set(TOPICS)


def test_ids_are_unique_but_for_duplicates_which_repeat_a_recent_event_byte_for_byte() -> None:
    seen: dict[object, tuple[int, ShopEvent]] = {}
    duplicates = 0
    for index, event in enumerate(make(3000)):
        if event.kind == Kind.BROKEN:
            continue
        identity = fields(event)["event_id"]
        if event.kind == Kind.DUPLICATE:
            duplicates += 1
            before, first = seen[identity]
            assert index - before < 40
            assert event[:3] == first[:3]
        else:
            assert identity not in seen
            seen[identity] = (index, event)
    assert 50 < duplicates < 140


def test_events_of_another_name_are_no_duplicates_of_these() -> None:
    ids = [{fields(event)["event_id"] for event in make(200, name=name, shares=Shares(broken=0))} for name in "ab"]
    assert not ids[0] & ids[1]


def test_late_events_are_later_than_any_that_are_only_out_of_order() -> None:
    for index, event in enumerate(make(3000, shares=Shares(late=0.1, duplicates=0))):
        if event.kind == Kind.BROKEN:
            continue
        behind_ms = START_MS + 600 * index - time_ms(event)
        if event.kind == Kind.LATE:
            assert LATE_MS[0] <= behind_ms <= LATE_MS[1] + OUT_OF_ORDER_MS
        else:
            assert 0 <= behind_ms <= OUT_OF_ORDER_MS


def test_only_bots_identify_themselves_as_bots() -> None:
    for event in make(2000):
        if event.kind != Kind.BROKEN:
            agent = str(fields(event)["agent"]).lower()
            assert (event.kind == Kind.BOT) == ("bot" in agent or "crawler" in agent)


def test_events_are_broken_in_every_way_one_after_the_other() -> None:
    broken = [event.value for event in make(1000, shares=Shares(broken=0.1)) if event.kind == Kind.BROKEN][:7]
    assert len(set(broken)) == 7
    assert None in broken


def test_a_visitor_buys_only_what_was_viewed_before() -> None:
    viewed: dict[bytes, set[object]] = defaultdict(set)
    purchases = 0
    for event in make(4000, shares=Shares(0, 0, 0, 0)):
        if event.topic == PRODUCT_VIEWED:
            viewed[event.key].add(fields(event)["product_id"])
        else:
            assert fields(event)["product_id"] in viewed[event.key]
            purchases += event.topic == PURCHASE_COMPLETED
    assert purchases > 100


def test_the_shares_are_kept() -> None:
    counts = Counter(event.kind for event in make(20_000))
    for kind, share in ((Kind.BOT, 0.06), (Kind.LATE, 0.02), (Kind.DUPLICATE, 0.03), (Kind.BROKEN, 0.01)):
        assert abs(counts[kind] / 20_000 - share) < 0.006, kind
