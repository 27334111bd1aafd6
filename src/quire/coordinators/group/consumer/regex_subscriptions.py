"""The regular expressions that members subscribe to, and the topics that match them.

An expression is resolved when the first member subscribes to it, and again when topics have changed (`freshness`). A
record is written only if other topics match than before.
"""

import logging

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.records import ResolvedRegex
from quire.coordinators.regex import RegexError, TopicRegex
from quire.coordinators.runtime.record import StateRecord
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("quire.groups")

MOST_COMPILED = 256


class RegexSubscriptions:
    """Caches compiled expressions, which several members and groups may use."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[str, TopicRegex] = {}

    def write_changed(
        self, builder: ConsumerResultBuilder, before: str, after: str, image: ClusterImage, now_ms: int
    ) -> None:
        """A member has changed its expression. INVALID_REGULAR_EXPRESSION if it is not valid."""
        if before and before not in builder.group.subscribed_regexes:
            builder.write(records.regular_expression_tombstone(builder.group.group_id, before))
        if after and after not in builder.group.resolved:
            try:
                topics = self._resolve(after, image)
            except RegexError as error:
                raise ApiError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{after}` is not a valid regular expression: {error}.",
                ) from None
            builder.write(_resolved(builder.group, after, topics, image, now_ms))

    def write_refreshed(self, builder: ConsumerResultBuilder, image: ClusterImage, now_ms: int) -> None:
        for regex in sorted(builder.group.subscribed_regexes):
            try:
                topics = self._resolve(regex, image)
            except RegexError as error:
                logger.warning("group %s keeps its topics for `%s`: %s", builder.group.group_id, regex, error)
                continue
            known = builder.group.resolved.get(regex)
            if known is None or known.topics != topics:
                builder.write(_resolved(builder.group, regex, topics, image, now_ms))

    def _resolve(self, regex: str, image: ClusterImage) -> frozenset[str]:
        compiled = self._compiled.get(regex)
        if compiled is None:
            if len(self._compiled) >= MOST_COMPILED:
                self._compiled.clear()
            compiled = self._compiled[regex] = TopicRegex(regex)
        return frozenset(compiled.matching(image.topics_by_name))


def _resolved(
    group: ConsumerGroup, regex: str, topics: frozenset[str], image: ClusterImage, now_ms: int
) -> StateRecord:
    return records.regular_expression(group.group_id, regex, ResolvedRegex(topics, image.offset, now_ms))
