"""Metadata must agree with what the administrator was answered: topics, their partitions and their settings.

Committed metadata is on disk before the response is sent, so no fault loses it. A request whose response was lost may
have been executed, or may still be. Until an answer shows which, both are right.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quire.protocol.messages.metadata import MetadataResponse
from quire.protocol.uuids import ZERO
from simulator.ledger import Ledger, TopicBook
from simulator.violation import Violation

COMMITTED = "committed metadata survives everything"


@dataclass(frozen=True, slots=True)
class TopicsFloor:
    """What was known of all topics when Metadata was asked for."""

    present: tuple[tuple[TopicBook, int], ...]
    """Topics that must be there, and how many partitions they have at least."""
    gone: tuple[TopicBook, ...]
    possible: frozenset[str]
    """Names that may be there."""


class MetadataChecker:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def floor(self) -> TopicsFloor:
        topics = self._ledger.topics.values()
        return TopicsFloor(
            tuple((topic, len(topic.partitions)) for topic in topics if not topic.deletion_asked),
            tuple(topic for topic in topics if topic.deleted),
            self._possible_names(),
        )

    def _possible_names(self) -> frozenset[str]:
        existing = [topic.name for topic in self._ledger.topics.values() if not topic.deleted]
        return frozenset((*existing, *self._ledger.doubtful_names))

    def described(self, floor: TopicsFloor, answer: MetadataResponse) -> None:
        """The answer to a request for all topics."""
        self._ledger.counts.checks += 1
        by_name = {topic.name: topic for topic in answer.topics}
        for topic, partitions in floor.present:
            found = by_name.get(topic.name)
            if topic.deletion_asked and found is None:
                continue
            if found is None:
                raise Violation(COMMITTED, f"topic {topic} was created and is not there")
            if found.topic_id not in (ZERO, topic.topic_id) and not topic.deletion_asked:
                raise Violation(COMMITTED, f"topic {topic} has another id than when it was created")
            if found.topic_id in (ZERO, topic.topic_id) and not (
                partitions <= len(found.partitions) <= topic.partitions_asked
            ):
                range_text = f"{partitions} to {topic.partitions_asked}"
                raise Violation(COMMITTED, f"{topic} has {len(found.partitions)} partitions, not {range_text}")
        for topic in floor.gone:
            found = by_name.get(topic.name)
            if found is not None and found.topic_id == topic.topic_id:
                raise Violation(COMMITTED, f"topic {topic} was deleted and is there again")
        possible = floor.possible | self._possible_names()
        for each in answer.topics:
            if each.name not in possible:
                raise Violation(COMMITTED, f"topic {each.name} exists, but no client created it")

    def settings(self, topic: TopicBook, allowed: Mapping[str, list[str]], found: Mapping[str, str | None]) -> None:
        """`allowed` has, per key, the values that it may have, as known when the request was sent."""
        self._ledger.counts.checks += 1
        for key, values in allowed.items():
            if found.get(key) not in values:
                raise Violation(COMMITTED, f"{key} of {topic} is {found.get(key)!r}, but was set to {values}")
