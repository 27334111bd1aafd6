"""What the runtime asks of a state machine, and what it gives to one."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quire.config.broker_config import BrokerConfig
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import Result
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.seams import Random


class Caller(NamedTuple):
    """Who asks, as far as a coordinator cares."""

    client_id: str
    client_host: str
    api_version: int


TimedOperation = Callable[[int], Result[None]]
"""(now_ms) -> Result: what is to be done when a timer fires, through the same door as a request."""


class Timers(Protocol):
    """One timer per key; gone when the machine is unloaded. Delays are measured on the monotonic clock."""

    def schedule(self, key: Hashable, delay_ms: float, operation: TimedOperation) -> None:
        """Runs `operation` after `delay_ms`, instead of what was scheduled under this key."""
        ...

    def cancel(self, key: Hashable) -> None:
        """Does nothing where nothing is scheduled."""
        ...


@dataclass(slots=True)
class Surroundings:
    """What a machine may look at besides its own state."""

    config: BrokerConfig
    random: Random
    timers: Timers
    image: Callable[[], ClusterImage]
    """The cluster's topics, as committed."""
    max_batch_bytes: Callable[[], int]
    """What the log takes at once, as it is set now: an operation with more records than that is refused."""


class StateMachine(Protocol):
    """The state of one partition of an internal topic.

    Its lasting state changes in `replay` and `replay_end` alone, so that after a restart it is the same; everything
    else it keeps (timers, who waits) is about the present, and is set up in `loaded`.
    """

    record_types: RecordTypes

    def replay(self, record: StateRecord, origin: Origin) -> None:
        """Takes over a record that is in the log, or is about to be. Records may be replayed that compaction left over:
        a tombstone of something unknown, a member without its group."""
        ...

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A transaction that wrote to this log has ended."""
        ...

    def loaded(self, now_ms: int) -> None:
        """Everything is replayed, and requests are about to come."""
        ...

    def unloaded(self, reason: ErrorCode) -> None:
        """This machine is done for: whoever it let wait is refused with `reason`."""
        ...

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        """`Surroundings.image` is another than before. `topics` were created, or deleted, or both since."""
        ...
