"""Faults that tests of applications inject: the next Produce fails, or every Fetch is delayed.

Only `quire.testing` enables this (`quire start --control-stdin`). Without it, dispatch skips this module. Every fault
counts how many requests it has affected, so that a test can find a fault that tested nothing. Requests of
`UNAFFECTED_CLIENT_ID` meet no faults: a test prepares and checks its topics with it.
"""

from quire.protocol.apis import api_key
from quire.protocol.errors import ApiError, ErrorCode

UNAFFECTED_CLIENT_ID = "quire.testing"


class _Fault:
    __slots__ = ("delay_ms", "error", "left", "uses")

    def __init__(self, *, error: ErrorCode = ErrorCode.NONE, left: int = 0, delay_ms: int = 0) -> None:
        self.error = error
        self.left = left
        self.delay_ms = delay_ms
        self.uses = 0


class Faults:
    __slots__ = ("_delays", "_failures", "_requested")

    def __init__(self) -> None:
        self._requested: list[_Fault] = []
        self._failures: dict[int, list[_Fault]] = {}
        self._delays: dict[int, _Fault] = {}

    def fail_next(self, api: str, error: str, count: int = 1) -> None:
        """The next `count` requests of `api` fail with `error` and do nothing."""
        fault = _Fault(error=ErrorCode[error], left=count)
        self._requested.append(fault)
        self._failures.setdefault(api_key(api), []).append(fault)

    def delay(self, api: str, ms: int) -> None:
        """Delays every response of `api` from now on. 0 ends the delay."""
        fault = self._delays[api_key(api)] = _Fault(delay_ms=ms)
        if ms:
            self._requested.append(fault)

    def clear(self) -> None:
        self._requested.clear()
        self._failures.clear()
        self._delays.clear()

    def uses(self) -> list[int]:
        """How many requests each fault since the last `clear` has affected, in the order in which they were set."""
        return [fault.uses for fault in self._requested]

    def fail(self, key: int, client_id: str = "") -> None:
        """Raises the error with which this request must fail, if there is one."""
        code = ErrorCode.NONE if client_id == UNAFFECTED_CLIENT_ID else self.next_failure(key)
        if code is not ErrorCode.NONE:
            raise ApiError(code, "injected by the test")

    def next_failure(self, key: int) -> ErrorCode:
        waiting = self._failures.get(key)
        if not waiting:
            return ErrorCode.NONE
        fault = waiting[0]
        fault.uses += 1
        fault.left -= 1
        if fault.left <= 0:
            del waiting[0]
        return fault.error

    def delay_ms(self, key: int, client_id: str = "") -> int:
        fault = None if client_id == UNAFFECTED_CLIENT_ID else self._delays.get(key)
        if fault is None:
            return 0
        fault.uses += 1
        return fault.delay_ms
