"""The regular expressions that a group's members subscribe to, and the topics they stand for.

An expression is resolved when the first member brings it, and looked at again when topics have changed; `freshness`
says when. Only an expression that matches other topics than before is written.
"""

import logging

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.records import ResolvedRegex
from quire.coordinators.regex import RegexError, TopicRegex
from quire.coordinators.runtime.record import StateRecord
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("quire.groups")

MOST_COMPILED = 256


class RegexSubscriptions:
    """Keeps what was compiled, for the groups and members that use the same expression."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[str, TopicRegex] = {}

    def write_changed(self, draft: Draft, before: str, after: str, image: ClusterImage, now_ms: int) -> None:
        """A member subscribes to another expression. INVALID_REGULAR_EXPRESSION for what is none."""
        if before and before not in draft.group.subscribed_regexes:
            draft.write(records.regular_expression_tombstone(draft.group.group_id, before))
        if after and after not in draft.group.resolved:
            try:
                topics = self._resolve(after, image)
            except RegexError as error:
                raise ApiError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{after}` is not a valid regular expression: {error}.",
                ) from None
            draft.write(_resolved(draft.group, after, topics, image, now_ms))

    def write_refreshed(self, draft: Draft, image: ClusterImage, now_ms: int) -> None:
        for regex in sorted(draft.group.subscribed_regexes):
            try:
                topics = self._resolve(regex, image)
            except RegexError as error:
                logger.warning("group %s keeps its topics for `%s`: %s", draft.group.group_id, regex, error)
                continue
            known = draft.group.resolved.get(regex)
            if known is None or known.topics != topics:
                draft.write(_resolved(draft.group, regex, topics, image, now_ms))

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
