"""Finding the coordinator of a group or a transactional id, and what coordinators may always answer."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest
from simulator.clients.client import SimClient
from simulator.clients.routes import GROUP, TRANSACTION, Coordinator
from simulator.clients.wire import Lost
from simulator.violation import Violation

__all__ = ["GROUP", "NOT_NOW", "TRANSACTION", "find_coordinator"]

FIRST_VERSION_WITH_TRANSACTIONS = 1
FIRST_VERSION_WITH_MANY_KEYS = 4

NOT_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""The client must retry. With all but the first, the change may be in the log nevertheless."""


async def find_coordinator(client: SimClient, key_type: int, key: str) -> None:
    """Retries until there is one."""
    while True:
        await client.connected()
        oldest = FIRST_VERSION_WITH_TRANSACTIONS if key_type == TRANSACTION else 0
        version = client.version(FindCoordinatorRequest, oldest)
        request = FindCoordinatorRequest(key_type=key_type)
        if version >= FIRST_VERSION_WITH_MANY_KEYS:
            request.coordinator_keys = [key]
        else:
            request.key = key
        try:
            answer = await client.ask(request, at_least=version, at_most=version)
        except Lost:
            await client.back_off()
            continue
        found = answer.coordinators[0] if version >= FIRST_VERSION_WITH_MANY_KEYS else answer
        error = client.expect(found.error_code, f"FindCoordinator of {key}", *NOT_NOW, *client.excuses)
        if error is ErrorCode.NONE:
            if version >= FIRST_VERSION_WITH_MANY_KEYS and found.key != key:
                raise Violation("answers are to the request", f"{client.name} asked for {key}, got {found.key}")
            client.routes.learn_coordinator(Coordinator(key_type, key), found.host)
            return
        await client.back_off()
