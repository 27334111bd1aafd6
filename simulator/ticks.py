"""The order of events in a run, as clients know it: which response arrived before which request was sent."""


class Ticks:
    """Increasing numbers."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last
