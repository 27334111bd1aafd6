"""The one place where a client is slowed down.

Dispatch asks here once for every request and writes the answer into the response's throttle time. Quotas will be
counted here; without any, nobody is throttled.
"""

from quire.node.context import Context


class Throttle:
    __slots__ = ()

    def delay_ms(self, context: Context, api_key: int, size_bytes: int) -> int:
        return 0
