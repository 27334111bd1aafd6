"""Failures on request, for other people's tests: the next Produce fails, every Fetch takes longer.

Only `quire.testing` switches this on (`quire start --control-stdin`); without it dispatch never looks here.
"""

from quire.protocol.apis import api_key
from quire.protocol.errors import ApiError, ErrorCode


class Faults:
    __slots__ = ("_delays_ms", "_failures")

    def __init__(self) -> None:
        self._failures: dict[int, list[ErrorCode]] = {}
        self._delays_ms: dict[int, int] = {}

    def fail_next(self, api: str, error: str, count: int = 1) -> None:
        """The next `count` requests of `api` are answered with `error` and not carried out."""
        self._failures.setdefault(api_key(api), []).extend([ErrorCode[error]] * count)

    def delay(self, api: str, ms: int) -> None:
        """Every answer to `api` waits this long from now on; 0 ends it."""
        self._delays_ms[api_key(api)] = ms

    def clear(self) -> None:
        self._failures.clear()
        self._delays_ms.clear()

    def fail(self, key: int) -> None:
        """Raises what the next request of this API is to fail with, if it is."""
        code = self.next_failure(key)
        if code is not ErrorCode.NONE:
            raise ApiError(code, "asked for by the test")

    def next_failure(self, key: int) -> ErrorCode:
        waiting = self._failures.get(key)
        return waiting.pop(0) if waiting else ErrorCode.NONE

    def delay_ms(self, key: int) -> int:
        return self._delays_ms.get(key, 0)
