"""Finding the coordinator of a group or a transactional id, and what coordinators may always answer."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest
from simulator.clients.client import SimClient
from simulator.clients.wire import Lost
from simulator.violation import Violation

GROUP = 0
TRANSACTION = 1
FIRST_VERSION_WITH_TRANSACTIONS = 1
FIRST_VERSION_WITH_MANY_KEYS = 4

NOT_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""Ask again. With all but the first nobody knows whether what was asked for is in the log all the same."""


async def find_coordinator(client: SimClient, key_type: int, key: str) -> None:
    """Asks until there is one; it is the only node there is."""
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
                raise Violation("answers are to what was asked", f"{client.name} asked for {key}, got {found.key}")
            return
        await client.back_off()
