"""The order in which things happened in a run, as clients know it: what was told before something else was asked."""


class Ticks:
    """Numbers that rise."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last
