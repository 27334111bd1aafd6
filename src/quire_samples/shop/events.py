"""Generates the events of a shop's visitors: they view products, put some into the cart and buy a few of them.

Most events are good. Known shares are from bots, late, duplicates or broken, as a pipeline has to expect them; each
kind is counted. The same random numbers and the same times give the same events.
`quire-samples shop send` sends them.
"""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

PRODUCT_VIEWED = "product_viewed"
ADD_TO_CART = "add_to_cart"
PURCHASE_COMPLETED = "purchase_completed"
TOPICS = (PRODUCT_VIEWED, ADD_TO_CART, PURCHASE_COMPLETED)

USERS = 400
BOTS = 8
VISITORS_AT_ONCE = 30
MOST_VIEWS = 6
CART_SHARE = 0.5
PURCHASE_SHARE = 0.7
DUPLICATES_WITHIN = 4  # a duplicate repeats one of this many previous events
OUT_OF_ORDER_MS = 15_000
LATE_MS = (45 * 60_000, 90 * 60_000)

PRODUCTS = tuple(
    (f"{good}-{size}", (index + 2) * step)
    for index, good in enumerate(("notebook", "ledger", "sketchbook", "diary", "atlas", "folio", "album"))
    for size, step in (("a6", 150), ("a5", 220), ("a4", 310))
)
BROWSERS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Macintosh)", "Mozilla/5.0 (iPhone)")
CRAWLERS = ("PriceBot/2.1", "Mozilla/5.0 (compatible; ShelfCrawler/1.0)")

Fields = dict[str, object]
T = TypeVar("T")


class Dice(Protocol):
    """Random numbers, as from `random.Random`."""

    def random(self) -> float: ...


class Kind(StrEnum):
    """The quality of an event."""

    GOOD = "good"
    BOT = "bot"
    LATE = "late"
    DUPLICATE = "duplicate"
    BROKEN = "broken"


class ShopEvent(NamedTuple):
    topic: str
    key: bytes
    value: bytes | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each kind of imperfect event."""

    bots: float = 0.06
    late: float = 0.02
    duplicates: float = 0.03
    broken: float = 0.01


@dataclass(slots=True)
class _Visit:
    user: str
    agent: str
    views_left: int
    product: tuple[str, int] = PRODUCTS[0]
    in_cart: bool = False
    over: bool = False


def _without_an_id(fields: Fields) -> bytes:
    return _encode({name: value for name, value in fields.items() if name != "event_id"})


def _without_a_time(fields: Fields) -> bytes:
    return _encode(fields | {"event_time": None})


def _of_another_type(fields: Fields) -> bytes:
    return _encode(fields | {"price_cents": "a few francs"})


def _below_zero(fields: Fields) -> bytes:
    return _encode(fields | {"price_cents": -1})


def _cut_off(fields: Fields) -> bytes:
    return _encode(fields)[:-12]


def _no_text(fields: Fields) -> bytes:
    return b"\xff\xfe\x00" + str(fields["event_id"]).encode()


def _nothing(fields: Fields) -> None:
    return None


BREAKAGES: tuple[Callable[[Fields], bytes | None], ...] = (
    _cut_off,
    _without_an_id,
    _of_another_type,
    _without_a_time,
    _below_zero,
    _no_text,
    _nothing,
)


@dataclass(slots=True)
class ShopEvents:
    """The events of one shop; `counts` has the number of each kind."""

    dice: Dice
    shares: Shares = field(default_factory=Shares)
    name: str = "e"
    """The prefix of event ids. Each run needs a different one, or its events are duplicates."""
    counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    _number: int = 0
    _visits: list[_Visit] = field(default_factory=list)
    _recent: deque[ShopEvent] = field(default_factory=lambda: deque(maxlen=DUPLICATES_WITHIN))

    def next(self, time_ms: int) -> ShopEvent:
        """The event at this time in the shop."""
        event = self._make(self._kind(), time_ms)
        self.counts[event.kind] += 1
        return event

    def _kind(self) -> Kind:
        throw = self.dice.random()
        for kind, share in (
            (Kind.BOT, self.shares.bots),
            (Kind.LATE, self.shares.late),
            (Kind.DUPLICATE, self.shares.duplicates),
            (Kind.BROKEN, self.shares.broken),
        ):
            if throw < share:
                return kind
            throw -= share
        return Kind.GOOD

    def _make(self, kind: Kind, time_ms: int) -> ShopEvent:
        if kind == Kind.DUPLICATE and self._recent:
            return self._pick(tuple(self._recent))._replace(kind=kind)
        time_ms -= int(self.dice.random() * OUT_OF_ORDER_MS)
        if kind == Kind.BOT:
            return self._view_by_a_bot(time_ms)
        if kind == Kind.LATE:
            earliest, latest = LATE_MS
            time_ms -= earliest + int(self.dice.random() * (latest - earliest))
        topic, fields = self._advance(self._visit(), time_ms)
        key = str(fields["user_id"]).encode()
        if kind == Kind.BROKEN:
            return ShopEvent(topic, key, BREAKAGES[self.counts[kind] % len(BREAKAGES)](fields), kind)
        event = ShopEvent(topic, key, _encode(fields), Kind.LATE if kind == Kind.LATE else Kind.GOOD)
        if event.kind == Kind.GOOD:
            self._recent.append(event)
        return event

    def _view_by_a_bot(self, time_ms: int) -> ShopEvent:
        user = f"user-bot-{self._below(BOTS)}"
        fields = self._fields(time_ms, user, self._pick(CRAWLERS), self._pick(PRODUCTS))
        return ShopEvent(PRODUCT_VIEWED, user.encode(), _encode(fields), Kind.BOT)

    def _visit(self) -> _Visit:
        """One of the current visits; new visits replace those that are over."""
        self._visits = [visit for visit in self._visits if not visit.over]
        while len(self._visits) < VISITORS_AT_ONCE:
            user = f"user-{self._below(USERS)}"
            self._visits.append(_Visit(user, self._pick(BROWSERS), 1 + self._below(MOST_VIEWS)))
        return self._pick(tuple(self._visits))

    def _advance(self, visit: _Visit, time_ms: int) -> tuple[str, Fields]:
        if visit.views_left:
            visit.views_left -= 1
            # Some products are more popular: the lower of two random numbers favours the first ones.
            visit.product = PRODUCTS[min(self._below(len(PRODUCTS)), self._below(len(PRODUCTS)))]
            visit.over = not visit.views_left and self.dice.random() > CART_SHARE
            return PRODUCT_VIEWED, self._fields(time_ms, visit.user, visit.agent, visit.product)
        fields = self._fields(time_ms, visit.user, visit.agent, visit.product) | {"quantity": 1 + self._below(3)}
        if not visit.in_cart:
            visit.in_cart = True
            visit.over = self.dice.random() > PURCHASE_SHARE
            return ADD_TO_CART, fields
        visit.over = True
        return PURCHASE_COMPLETED, fields | {"order_id": f"order-{fields['event_id']}"}

    def _fields(self, time_ms: int, user: str, agent: str, product: tuple[str, int]) -> Fields:
        self._number += 1
        return {
            "event_id": f"{self.name}-{self._number}",
            "event_time": datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds"),
            "user_id": user,
            "agent": agent,
            "product_id": product[0],
            "price_cents": product[1],
        }

    def _below(self, limit: int) -> int:
        return int(self.dice.random() * limit)

    def _pick(self, options: tuple[T, ...]) -> T:
        return options[self._below(len(options))]


def _encode(fields: Fields) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
