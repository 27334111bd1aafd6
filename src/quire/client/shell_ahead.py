"""Runs an iterator ahead of its reader, in a thread of its own, by a limited number of items.

This is for work that waits alternately for a broker and for the reader: neither has to wait for the other's pauses. An
exception is raised at the position of the missing item. If the reader stops early, the iterator stops at its next item.
"""

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Shelf(Generic[T]):
    """Items that were produced and not read yet, between the two threads."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._complete = False
        self._failure: BaseException | None = None
        self._stopped = False

    def fill(self, items: Generator[T, None, None]) -> None:
        try:
            for item in items:
                if not self._put(item):
                    items.close()
        except BaseException as error:
            self._failure = error
        with self._changed:
            self._complete = True
            self._changed.notify()

    def _put(self, item: T) -> bool:
        """Waits for room; false if the reader has stopped."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._items) < self._depth or self._stopped)
            self._items.append(item)
            self._changed.notify()
            return not self._stopped

    def take(self) -> Iterator[T]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._complete)
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify()
            yield item
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()


def ahead(items: Generator[T, None, None], depth: int) -> Iterator[T]:
    """The same items in the same order, up to `depth` of them produced before the reader needs them."""
    shelf = _Shelf[T](depth)
    threading.Thread(target=shelf.fill, args=(items,), name="ahead", daemon=True).start()
    try:
        yield from shelf.take()
    finally:
        shelf.stop()
