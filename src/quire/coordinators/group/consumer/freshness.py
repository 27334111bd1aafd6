"""Freshness: which version of the metadata a group has checked. In memory only, never in the log.

Metadata changes far more often than the topics of one group, and there may be many groups. So a change only increments
a version, and each group checks its topics with its next heartbeat.
"""

from typing import NamedTuple

REGEXES_AT_MOST_EVERY_MS = 10_000
"""A minimum, because matching all topics costs more than checking the topics of the group."""


class Freshness(NamedTuple):
    """What one group has checked. A version is the number of metadata changes until then."""

    topics_version: int = -1
    regexes_version: int = -1
    regexes_looked_at_ms: int = 0

    def regexes_are_stale(self, version: int, interval_ms: int, now_ms: int) -> bool:
        wait_ms = interval_ms if self.regexes_version == version else REGEXES_AT_MOST_EVERY_MS
        # If the wall clock was set back, the check must not wait until the clock has caught up.
        return not 0 <= now_ms - self.regexes_looked_at_ms < wait_ms
