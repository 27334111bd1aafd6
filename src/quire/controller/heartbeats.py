"""The sessions of brokers: when each sent its last heartbeat, and how far it has read the metadata log.

A registered broker that sends no heartbeat within the session timeout is fenced. How far brokers have read the log
decides when one may be unfenced, and when one that is stopping may stop. This state is in memory only: it is lost with
the term of the active controller, and the next one gives every broker a full session.
"""

from collections.abc import Container
from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class _Heard:
    epoch: int
    at_ms: float
    metadata_offset: int = -1
    shutdown_offset: int | None = None
    """The offset from which on others know that this broker is stopping; None while it is not."""


class Heartbeats:
    __slots__ = ("_heard", "_session_timeout_ms")

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._heard: dict[int, _Heard] = {}

    def clear(self) -> None:
        self._heard.clear()

    def heard(self, broker_id: int, epoch: int, now_ms: float, metadata_offset: int = -1) -> None:
        known = self._heard.get(broker_id)
        if known is None or known.epoch != epoch:
            known = self._heard[broker_id] = _Heard(epoch, now_ms)
        known.at_ms = now_ms
        known.metadata_offset = max(known.metadata_offset, metadata_offset)

    def forget(self, broker_id: int) -> None:
        self._heard.pop(broker_id, None)

    def renew(self, now_ms: float) -> None:
        """Every session begins again: the controller could not read the heartbeats that came."""
        for known in self._heard.values():
            known.at_ms = now_ms

    def is_alive(self, broker_id: int, epoch: int, now_ms: float) -> bool:
        known = self._heard.get(broker_id)
        return known is not None and known.epoch == epoch and now_ms < known.at_ms + self._session_timeout_ms

    def start_shutdown(self, broker_id: int, epoch: int, offset: int) -> None:
        """Called again for each leadership that moves: others know of all when they have read the last."""
        known = self._heard.get(broker_id)
        if known is not None and known.epoch == epoch:
            known.shutdown_offset = offset

    def others_know_of_shutdown(self, broker_id: int, active: Container[int]) -> bool:
        """Whether every other active broker has read that this one leads no partition.

        As in Kafka, a fenced broker and one that stops too are not waited for: they serve no clients.
        """
        offset = self._heard[broker_id].shutdown_offset
        others = (known for id_, known in self._heard.items() if id_ != broker_id and id_ in active)
        return offset is None or all(known.metadata_offset >= offset for known in others)

    def silent(self, now_ms: float) -> list[int]:
        """Brokers whose session has ended, in order of their ids."""
        limit_ms = now_ms - self._session_timeout_ms
        return sorted(id_ for id_, known in self._heard.items() if known.at_ms <= limit_ms)

    @property
    def next_expiry_ms(self) -> float:
        return min((known.at_ms for known in self._heard.values()), default=inf) + self._session_timeout_ms
