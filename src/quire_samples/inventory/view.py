"""The view: the current stock, built from the event topic and queried by path, as over HTTP.

    /items           all items              /items/NAME   one item
    /health          offsets and lag; 503 until the view has caught up once, and while the cluster is unreachable

It is built only from the committed events of the compacted topic: the last event of an item has its level. Every
response contains the offsets that it is based on. An item is always in the state after one of its events. Two items of
one order can be in different partitions; one may be ahead for a moment. `quire-samples inventory view` serves it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from urllib.parse import unquote

from quire.client.cluster import Cluster
from quire.client.consumer import Consumer, Start
from quire.client.errors import ClientError
from quire.client.fetched import Fetched
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.protocol.errors import ApiError
from quire.steps import Steps, perform, sleep
from quire_samples.inventory.events import StockEvent
from quire_samples.inventory.json_response import JsonResponse
from quire_samples.inventory.reading import READ_COMMITTED, readable, whole
from quire_samples.inventory.stock import OutOfOrderError
from quire_samples.inventory.topics import grown, partitions_of

LOOK_AT_ENDS_MS = 1_000.0


class View:
    """The current stock. Threads that change it or read it must hold the same lock."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.items: dict[str, StockEvent] = {}
        self.offsets: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.caught_up = False
        self.trouble: str | None = None

    def begin(self, offsets: Mapping[int, int], ends: Mapping[int, int]) -> None:
        self.offsets, self.ends = dict(offsets), dict(ends)
        self._notice_end()

    def apply(self, fetched: Fetched) -> None:
        for record in fetched.records():
            event = readable(fetched.topic_partition, record)
            before = self.items.get(event.item)
            if before is not None and event.sequence <= before.sequence:
                raise OutOfOrderError(
                    f"{fetched.topic_partition} has event {event.sequence} of {event.item} at offset {record.offset}, "
                    f"after event {before.sequence}: two processors have written, or partitions were added to the topic"
                )
            self.items[event.item] = event
        self.offsets[fetched.topic_partition.partition] = fetched.next_offset
        self._notice_end()

    def note_ends(self, ends: Mapping[int, int]) -> None:
        """Notes the current end of each partition."""
        self.ends, self.trouble = dict(ends), None
        self._notice_end()

    @property
    def lag(self) -> int:
        return sum(max(0, end - self.offsets.get(partition, 0)) for partition, end in self.ends.items())

    def _notice_end(self) -> None:
        self.caught_up = self.caught_up or self.lag == 0

    # --- Answers

    def answer(self, path: str) -> JsonResponse:
        path = path.partition("?")[0].rstrip("/")
        if path == "/health":
            return self._health()
        if path == "/items":
            items = [_shown(event) for _, event in sorted(self.items.items())]
            return JsonResponse(200, {"items": items, "count": len(items), **self._as_of()})
        if path.startswith("/items/"):
            return self._item(unquote(path.removeprefix("/items/")))
        if path == "":
            return JsonResponse(200, {"paths": ["/items", "/items/NAME", "/health"]})
        return JsonResponse(404, {"error": f"there is no {path}; there are /items, /items/NAME and /health"})

    def _item(self, name: str) -> JsonResponse:
        event = self.items.get(name)
        if event is None:
            return JsonResponse(404, {"error": f"there is no event for item {name!r}", **self._as_of()})
        return JsonResponse(200, {**_shown(event), **self._as_of()})

    def _health(self) -> JsonResponse:
        well = self.caught_up and self.trouble is None
        status = "ok" if well else "unreachable" if self.trouble is not None else "rebuilding"
        content = {"status": status, "items": len(self.items), "lag": self.lag, **self._as_of()}
        if self.trouble is not None:
            content["trouble"] = self.trouble
        return JsonResponse(200 if well else 503, content)

    def _as_of(self) -> dict[str, object]:
        return {"topic": self.topic, "offsets": {str(index): at for index, at in sorted(self.offsets.items())}}


def _shown(event: StockEvent) -> dict[str, object]:
    return {
        "item": event.item,
        "level": event.level,
        "sequence": event.sequence,
        "changed_by": event.command,
        "changed_at_ms": event.at_ms,
    }


class Follower:
    """Keeps a view up to date: `rebuild` once, then `follow` until `stop`. Holds `lock` while it changes the view."""

    def __init__(self, cluster: Cluster, view: View, lock: AbstractContextManager[object] | None = None) -> None:
        self._cluster = cluster
        self._view = view
        self._lock: Callable[[], AbstractContextManager[object]] = lambda: nullcontext() if lock is None else lock
        self._consumer = Consumer(cluster.beside(), READ_COMMITTED)
        self._topic_partitions: list[TopicPartition] = []
        self._stopped = False

    def rebuild(self) -> Steps[None]:
        """Reads everything that is committed now."""
        self._topic_partitions = yield from partitions_of(self._cluster, self._view.topic)
        stretches = yield from whole(self._cluster, self._topic_partitions)
        with self._lock():
            self._view.begin(
                {topic_partition.partition: stretch.begin for topic_partition, stretch in stretches.items()},
                {topic_partition.partition: stretch.end for topic_partition, stretch in stretches.items()},
            )
        yield from self._consumer.assign(
            {topic_partition: Start(offset=each.begin) for topic_partition, each in stretches.items()}
        )
        while not self._view.caught_up and not self._stopped:
            yield from self._take()

    def follow(self) -> Steps[None]:
        """Applies new events; raises errors that the view cannot continue after."""
        perform(self._look_at_ends())
        while not self._stopped:
            yield from self._take()

    def stop(self) -> None:
        self._stopped = True
        self._consumer.wake()
        self._consumer.close()

    def _take(self) -> Steps[None]:
        yield self._consumer.arrival()
        pieces = self._consumer.poll()
        with self._lock():
            for fetched in pieces:
                self._view.apply(fetched)

    def _look_at_ends(self) -> Steps[None]:
        """Checks regularly what the lag is, and whether the cluster is reachable."""
        while not self._stopped:
            yield from sleep(self._cluster.clock, LOOK_AT_ENDS_MS)
            try:
                topic_partitions = yield from partitions_of(self._cluster, self._view.topic)
                found = yield from list_offsets(
                    self._cluster, dict.fromkeys(self._topic_partitions, LATEST), isolation_level=1
                )
            except (ApiError, ClientError) as error:
                with self._lock():
                    self._view.trouble = str(error)
            else:
                if topic_partitions != self._topic_partitions:
                    self._consumer.fail(grown(self._view.topic, len(self._topic_partitions), len(topic_partitions)))
                with self._lock():
                    self._view.note_ends(
                        {topic_partition.partition: at.offset for topic_partition, at in found.items()}
                    )
