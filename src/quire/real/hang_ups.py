"""Detects connections that the peer has closed or reset while bytes from it are still unread.

The event loop alone does not show this. It reports bytes and an end together as "readable", so a paused connection
cannot see an end behind unread bytes. And uvloop reports a reset only once: if bytes came before it, the receive
returns only these, and no event follows. So each socket is also registered with a separate epoll that reports only
ends. This costs one system call per connection and nothing per request.

Without epoll (macOS), an end is noticed only when the connection is read.
"""

import asyncio
import select
import socket
from collections.abc import Callable

_EVENTS_AT_ONCE = 64
"""How many ends are reported before the loop handles other events."""

HungUp = Callable[[bool], None]
"""Called once, with whether the connection is broken: False if the peer may still read."""


class HangUps:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: dict[int, HungUp] = {}
        self._epoll: select.epoll | None = None

    def watch(self, connection: socket.socket, hung_up: HungUp) -> None:
        if not hasattr(select, "epoll"):
            return
        if self._epoll is None:
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._report)
        self._epoll.register(connection, select.EPOLLRDHUP | select.EPOLLONESHOT)
        self._watched[connection.fileno()] = hung_up

    def forget(self, number: int) -> None:
        """The caller closes the socket with this descriptor next, which removes it from the epoll."""
        self._watched.pop(number, None)
        if not self._watched and self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _report(self) -> None:
        if self._epoll is None:
            return
        for number, events in self._epoll.poll(0, _EVENTS_AT_ONCE):
            hung_up = self._watched.get(number)
            if hung_up is not None:
                hung_up(bool(events & (select.EPOLLERR | select.EPOLLHUP)))
