"""Waits until every broker of a cluster answers Metadata and names all brokers, so none of them is fenced."""

from collections.abc import Callable, Sequence

from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.servers import parse_servers
from quire.client.shell_loop import BlockingLoop
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.real.random import RealRandom
from quire.steps import Steps, perform, sleep

_RETRY_MS = 10.0
_REQUEST_TIMEOUT_MS = 5_000.0
_PATIENCE_MS = 3_000.0

Late = Callable[[str, str], None]
"""Gets the address of a broker that has not answered for some seconds, and why."""


def when_all_answer(
    loop: BlockingLoop, addresses: Sequence[str], late: Late = lambda _address, _reason: None
) -> Pending[Exception | None]:
    """Completed when all do; the caller decides how long to wait."""
    return perform(_all_answer(loop, addresses, late))


def _all_answer(loop: BlockingLoop, addresses: Sequence[str], late: Late) -> Steps[None]:
    for address in addresses:
        client = Cluster(
            parse_servers(address),
            clock=loop,
            random=RealRandom(),
            network=loop,
            client_id="quire-start",
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        late_at_ms = loop.monotonic_ms() + _PATIENCE_MS
        try:
            while reason := (yield from _why_not(client, len(addresses))):
                if loop.monotonic_ms() >= late_at_ms:
                    late(address, reason)
                    late_at_ms = float("inf")
                yield from sleep(loop, _RETRY_MS)
        finally:
            client.close()


def _why_not(client: Cluster, count: int) -> Steps[str]:
    """Why the broker does not count as ready yet; empty if it does."""
    try:
        yield from client.refresh([])
    except (ClientError, ApiError) as error:
        return str(error)
    known = len(client.metadata.brokers)
    return "" if known == count else f"it knows {known} of {count} brokers"
