"""Waits until every broker of a cluster answers Metadata and names all brokers, so none of them is fenced."""

from collections.abc import Sequence

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


def when_all_answer(loop: BlockingLoop, addresses: Sequence[str]) -> Pending[Exception | None]:
    """Completed when all do; the caller decides how long to wait."""
    return perform(_all_answer(loop, addresses))


def _all_answer(loop: BlockingLoop, addresses: Sequence[str]) -> Steps[None]:
    for address in addresses:
        client = Cluster(
            parse_servers(address),
            clock=loop,
            random=RealRandom(),
            network=loop,
            client_id="quire-start",
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        try:
            while not (yield from _knows_all(client, len(addresses))):
                yield from sleep(loop, _RETRY_MS)
        finally:
            client.close()


def _knows_all(client: Cluster, count: int) -> Steps[bool]:
    try:
        yield from client.refresh([])
    except (ClientError, ApiError):
        return False
    return len(client.metadata.brokers) == count
