"""Histories of events for the tests, computed by `Stock`."""

from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.protocol.records import Record, build_batch
from quire_samples.inventory.commands import Command, Kind, Line, encode_command
from quire_samples.inventory.events import Source, StockEvent, encode_event
from quire_samples.inventory.stock import Stock

TOPIC = "inventory-events"


def history(*changes: tuple[str, int]) -> list[StockEvent]:
    """An event for each (item, change), as a processor would write it."""
    stock = Stock()
    events: list[StockEvent] = []
    for offset, (item, change) in enumerate(changes):
        kind = Kind.SHIPMENT if change > 0 else Kind.ORDER
        command = Command(f"c-{offset}", kind, (Line(item, abs(change)),), at_ms=offset)
        outcome = stock.decide(encode_command(command), Source(0, offset))
        assert isinstance(outcome, list), outcome
        events += outcome
    return events


def fetched(events: list[StockEvent], *, partition: int = 0, from_offset: int = 0) -> Fetched:
    """The events as fetched records."""
    records = [Record(0, 0, event.item.encode(), encode_event(event), []) for event in events]
    batch = build_batch(records, base_offset=from_offset)
    next_offset = from_offset + len(records)
    return Fetched(TopicPartition(TOPIC, partition), from_offset, next_offset, next_offset, batch, [])
