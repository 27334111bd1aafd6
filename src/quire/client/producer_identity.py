"""The identity of an idempotent producer: its producer id, which a broker allocates, and its epoch."""

from collections.abc import Callable

from quire.client.backoff import Backoff
from quire.client.batch import Identity
from quire.client.cluster import ANY, Cluster
from quire.client.errors import ClientError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.steps import Steps, perform, sleep

EPOCH_MAX = 0x7FFF


class ProducerIdentity:
    __slots__ = ("_changed", "_cluster", "_requested", "current")

    def __init__(self, cluster: Cluster, changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._changed = changed
        self._requested = False
        self.current: Identity | None = None

    def bump(self) -> None:
        """Moves to the next epoch, which only a producer without transactions may do; after the last, to a new id."""
        if self.current is not None:
            producer_id, epoch = self.current
            self.current = None if epoch == EPOCH_MAX else Identity(producer_id, epoch + 1)

    def obtain(self) -> Steps[Identity]:
        """Requests an id, and retries while the error is retriable."""
        backoff = Backoff(self._cluster.random)
        deadline_ms = self._cluster.clock.monotonic_ms() + self._cluster.request_timeout_ms
        while self.current is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
            response = yield from self._cluster.ask(ANY, request, InitProducerIdResponse)
            code = ErrorCode(response.error_code)
            if not code:
                self.current = Identity(response.producer_id, response.producer_epoch)
            elif not code.retriable or self._cluster.clock.monotonic_ms() > deadline_ms:
                raise ApiError(code, f"the broker did not allocate a producer id ({code.name})")
            else:
                yield from sleep(self._cluster.clock, backoff.next_ms())
        return self.current

    def request(self) -> None:
        """Obtains an id in the background, without a time limit, and then calls `changed`."""
        if not self._requested:
            self._requested = True
            perform(self._keep_asking()).when_done(self._obtained)

    def _keep_asking(self) -> Steps[None]:
        backoff = Backoff(self._cluster.random)
        while True:
            try:
                yield from self.obtain()
                return
            except (ClientError, ApiError):
                yield from sleep(self._cluster.clock, backoff.next_ms())

    def _obtained(self, outcome: Exception | None) -> None:
        assert outcome is None
        self._requested = False
        self._changed()
