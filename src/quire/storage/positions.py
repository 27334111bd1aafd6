"""The position of an offset: its segment, and the byte in that.

High watermarks and log ends are kept as positions, so that reading up to one needs no lookup.
"""


class LogPosition:
    """The first batch at or after `offset` begins at byte `position` of the segment named `segment_base`."""

    __slots__ = ("offset", "position", "segment_base")

    def __init__(self, offset: int, segment_base: int, position: int) -> None:
        self.offset = offset
        self.segment_base = segment_base
        self.position = position

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogPosition):
            return NotImplemented
        return (self.offset, self.segment_base, self.position) == (other.offset, other.segment_base, other.position)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LogPosition({self.offset}, segment {self.segment_base} @ {self.position})"


class RecentPositions:
    """A cache of positions in the active segment, mainly those where reads ended or will begin.

    For a reader that follows the writer, or continues where it stopped, neither index nor file is read. Only the last
    `LIMIT` positions are kept; a missing one costs a lookup.
    """

    __slots__ = ("_positions",)

    LIMIT = 64

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}

    def remember(self, offset: int, position: int) -> None:
        positions = self._positions
        if len(positions) >= self.LIMIT and offset not in positions:
            del positions[next(iter(positions))]
        positions[offset] = position

    def find(self, offset: int) -> int | None:
        return self._positions.get(offset)

    def clear(self) -> None:
        self._positions.clear()
