"""Decides how long a client is throttled.

Dispatch calls this once for every request and writes the result into the response's throttle time. Quotas will be
counted here. There are none yet, so no client is throttled.
"""

from quire.node.context import Context


class Throttle:
    __slots__ = ()

    def delay_ms(self, context: Context, api_key: int, size_bytes: int) -> int:
        return 0
