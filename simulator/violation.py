"""The exception that ends a run when a promise of Quire does not hold."""


class Violation(Exception):  # noqa: N818
    """`promise` is a short sentence that must be true; the text says what was observed instead."""

    def __init__(self, promise: str, seen: str) -> None:
        super().__init__(f"{promise}: {seen}")
        self.promise = promise
        self.seen = seen
