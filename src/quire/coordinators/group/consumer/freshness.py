"""Up to when a group's view of the cluster's topics is known to be right: of the present alone, never in the log.

Metadata changes far more often than a group's topics do, and there may be many groups: so a change only counts a number
up, and each group looks at its topics with its next heartbeat.
"""

from typing import NamedTuple

REGEXES_AT_MOST_EVERY_MS = 10_000
"""Matching expressions against all topics costs more than looking at a group's own."""


class Freshness(NamedTuple):
    """What one group has looked at: a `version` is the number of changes of the metadata until then."""

    topics_version: int = -1
    regexes_version: int = -1
    regexes_looked_at_ms: int = 0

    def regexes_are_stale(self, version: int, interval_ms: int, now_ms: int) -> bool:
        wait_ms = interval_ms if self.regexes_version == version else REGEXES_AT_MOST_EVERY_MS
        # A wall clock that was set back must not put this off until it is there again.
        return not 0 <= now_ms - self.regexes_looked_at_ms < wait_ms
