"""The interface between the runtime and a state machine."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quire.config.broker_config import BrokerConfig
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.seams import Random


class Caller(NamedTuple):
    """The client that sent a request, as far as coordinators need it."""

    client_id: str
    client_host: str
    api_version: int


TimedOperation = Callable[[int], CoordinatorResult[None]]
"""(now_ms) -> CoordinatorResult. The runtime runs the operation of a timer as it runs a request."""


class Timers(Protocol):
    """One timer per key, on the monotonic clock. All are cancelled when the machine is unloaded."""

    def schedule(self, key: Hashable, delay_ms: float, operation: TimedOperation) -> None:
        """Runs `operation` after `delay_ms`. Replaces the timer of this key, if there is one."""
        ...

    def cancel(self, key: Hashable) -> None:
        """Does nothing if there is no timer."""
        ...


@dataclass(slots=True)
class MachineEnvironment:
    """What a machine may use besides its own state."""

    config: BrokerConfig
    random: Random
    timers: Timers
    image: Callable[[], ClusterImage]
    """The committed metadata of the cluster."""
    max_batch_bytes: Callable[[], int]
    """The current limit of the log. An operation with more bytes of records is refused."""


class StateMachine(Protocol):
    """The state of one partition of an internal topic.

    Only `replay` and `replay_end` change its lasting state, so that it is the same after a restart. Other state, such
    as timers and waiting requests, is lost with the machine; `loaded` sets it up.
    """

    record_types: RecordTypes

    def replay(self, record: StateRecord, origin: Origin) -> None:
        """Applies a record that is in the log or about to be.

        After compaction there may be a tombstone of something unknown, or a member without its group.
        """
        ...

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Applies the marker that ends a transaction in this log."""
        ...

    def loaded(self, now_ms: int) -> None:
        """The whole log is replayed. Requests follow."""
        ...

    def unloaded(self, reason: ErrorCode) -> None:
        """The machine must refuse all its waiting requests with `reason`. It is not used afterwards."""
        ...

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        """`MachineEnvironment.image` has changed. `topics` were created or deleted since."""
        ...
