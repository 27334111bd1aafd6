"""The requests of a client that has disconnected.

A client may have sent requests before it went that change something: that it leaves its group, or records with acks=0.
Those that have arrived completely are handled in order, as in Kafka. Requests that only ask for something are skipped,
and a request that waits only to be answered is abandoned. The connection counts as open until all of that is done.

`Connection` calls these functions once its client has disconnected.
"""

from typing import TYPE_CHECKING

from quire.network.connection_owner import ConnectionOwner
from quire.network.framing import BadFrame
from quire.network.handler import CloseConnection
from quire.pending import Pending

if TYPE_CHECKING:
    from quire.network.connection import Connection


def proceed(connection: "Connection", owner: ConnectionOwner) -> None:
    """Handles the requests that are left, and removes the connection when there are none."""
    more = connection.frames.has_frame
    if connection.ending or (connection.ended and not more):
        connection.remove()
    elif connection.parked is not None and connection.parked.on_abandoned is None:
        # The node does this anyway. It ends by itself, and waiting for it keeps the requests in order.
        connection.pause_or_resume()
    elif not more:
        connection.abandon()
        _receive_rest(connection)
    elif not connection.yielded:
        connection.abandon()
        connection.yielded = True
        if owner.turns.wait_disconnected(connection):
            connection.pause_or_resume()
        else:
            connection.remove()


def take_turn(connection: "Connection", owner: ConnectionOwner, size: int) -> None:
    """Handles requests for one time slice, after `size` more bytes were received."""
    frames = connection.frames
    try:
        frame = frames.next_frame(size)
        until_ms = owner.turns.slice_end_ms(owner.clock.monotonic_ms())
        while frame is not None and not connection.ending:
            if owner.matters(frame) and not _handle(connection, owner, frame):
                break
            if owner.clock.monotonic_ms() >= until_ms:
                break
            frame = frames.next_frame()
    except (BadFrame, CloseConnection) as error:
        connection.fail(str(error))
    except Exception:
        connection.fail_on_bug()
    proceed(connection, owner)


def _handle(connection: "Connection", owner: ConnectionOwner, frame: memoryview) -> bool:
    """False if the requests after this one have to wait for it."""
    owner.counters.requests += 1
    answer = owner.handle(connection.info, frame)
    if isinstance(answer, Pending):
        if not answer.done:
            connection.park(answer)
            return False
        answer = answer.value
    if isinstance(answer, CloseConnection):
        raise answer
    return True


def _receive_rest(connection: "Connection") -> None:
    if connection.yielded or connection.starved:
        return
    if connection.frames.settle():
        connection.pause_or_resume()
    else:
        connection.wait_for_memory()
