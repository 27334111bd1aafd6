"""What a run ends with when a promise of Quire does not hold."""


class Violation(Exception):  # noqa: N818
    """`promise` is what should have held, in a few words; the text says what was seen instead."""

    def __init__(self, promise: str, seen: str) -> None:
        super().__init__(f"{promise}: {seen}")
        self.promise = promise
        self.seen = seen
