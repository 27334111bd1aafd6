"""The figures that `make run` shows of the shop and the inventory, from the committed records of their result topics.

Results of earlier runs are read too, and marked `earlier`. `Figures` keeps the numbers that are shown; `ResultReader`
feeds it new records.
"""

import json
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.client.admin.topics import describe_topics
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.protocol.records import Record
from quire.spark.dead_letters import SUFFIX, NotADeadLetterError, read_headers

SALES = "sales_per_minute"
SALES_5M = "sales_5m"
TOP = "top_viewed_products"
SESSIONS = "sessions"
STOCK = "inventory-events"
KEPT_WINDOWS = 8


@dataclass(slots=True)
class Figures:
    sales: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT_WINDOWS))
    last_5m: dict[str, Any] = field(default_factory=dict)
    orders: int = 0
    revenue_cents: int = 0
    top: dict[str, Any] = field(default_factory=dict)
    sessions: int = 0
    results: int = 0
    """The number of records that the pipelines have written in this run to the shop's result topics."""
    stock: dict[str, int] = field(default_factory=dict)
    dead_letters: Counter[str] = field(default_factory=Counter)
    earlier_sessions: int = 0
    earlier_dead_letters: int = 0

    def take(self, topic: str, record: Record, earlier: bool = False) -> None:
        if topic.endswith(SUFFIX):
            self.dead_letters[_reason(record)] += 1
            self.earlier_dead_letters += earlier
            return
        value = json.loads(record.value or b"{}") | {"earlier": earlier}
        self.results += topic != STOCK and not earlier
        if topic == SALES:
            # Windows of one batch are in any order; the latest in the shop's time are shown.
            newest = sorted([*self.sales, value], key=lambda window: str(window["start"]))
            self.sales = deque(newest, maxlen=KEPT_WINDOWS)
            self.orders += value["orders"]
            self.revenue_cents += value["revenue_cents"]
        elif topic == SALES_5M:
            self.last_5m = max(self.last_5m, value, key=lambda window: str(window.get("start", "")))
        elif topic == TOP:
            self.top = max(self.top, value, key=lambda window: str(window.get("start", "")))
        elif topic == SESSIONS:
            self.sessions += 1
            self.earlier_sessions += earlier
        elif topic == STOCK:
            self.stock[value["item"]] = value["level"]


def _reason(record: Record) -> str:
    try:
        return read_headers(record.headers).error
    except NotADeadLetterError as error:
        return str(error)


class ResultReader:
    """Follows the result topics that exist, and looks for the others until they do.

    It must be created before the pipelines start: records that exist when it first looks are from earlier runs.
    """

    def __init__(self, client: BlockingClient, figures: Figures, topics: Sequence[str]) -> None:
        self._client = client
        self._figures = figures
        self._missing = list(topics)
        self._consumers: list[Consumer] = []
        self._earlier: dict[TopicPartition, int] | None = None

    def take_new(self) -> None:
        """Takes the records that have arrived, without waiting."""
        self._find()
        for consumer in self._consumers:
            for fetched in consumer.poll():
                earlier_up_to = (self._earlier or {}).get(fetched.topic_partition, 0)
                for record in fetched.records():
                    self._figures.take(fetched.topic_partition.topic, record, record.offset < earlier_up_to)

    def _find(self) -> None:
        if not self._missing:
            return
        found = self._client.run(describe_topics(self._client.cluster, self._missing))
        there = {name: topic for name, topic in found.items() if not isinstance(topic, ApiError)}
        topic_partitions = [
            TopicPartition(name, partition) for name, topic in there.items() for partition in topic.partitions
        ]
        if self._earlier is None:
            ends = self._client.run(list_offsets(self._client.cluster, dict.fromkeys(topic_partitions, LATEST)))
            self._earlier = {topic_partition: at.offset for topic_partition, at in ends.items()}
        if there:
            consumer = Consumer(self._client.cluster, ConsumerConfig(read_committed=True, max_wait_ms=200))
            self._client.run(consumer.assign(dict.fromkeys(topic_partitions, BEGINNING)))
            self._missing = [name for name in self._missing if name not in there]
            self._consumers.append(consumer)
