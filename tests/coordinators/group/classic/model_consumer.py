"""A consumer as the coordinator sees it: it joins, syncs, sends heartbeats, and obeys. It never gives up.

It sends one request at a time. It repeats a request that gets no response in time, as a client would after its
connection broke; answers to what it has given up on do not reach it.
"""

from collections.abc import Callable
from typing import Any

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from simulator.clock import SimClock, SimTimer
from tests.coordinators.group.classic.classic_machine import Request

GROUP = "g"
PARTITIONS = 6
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 20_000
HEARTBEAT_MS = 3_000
JOIN_PATIENCE_MS = REBALANCE_TIMEOUT_MS + 5_000
PATIENCE_MS = 5_000
RETRY_MS = 100


_START_OVER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
_JOIN_AGAIN = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class Attempt:
    """A request in transit, and its pending response if the consumer still waits for it."""

    def __init__(self, consumer: "ModelConsumer", request: Request) -> None:
        self.consumer = consumer
        self.request = request
        self.answer: Pending[Any] | None = None

    @property
    def is_given_up(self) -> bool:
        return self.consumer.current is not self


class ModelConsumer:
    def __init__(
        self, number: int, clock: SimClock, send: Callable[[Attempt], None], *, version: int, instance_id: str | None
    ) -> None:
        self.number = number
        self.version = version
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.protocol_name: str | None = None
        self.assigned_in: int | None = None
        self.assignment: list[int] = []
        self.is_alive = True
        self.is_fenced = False
        self.metadata = b"0"
        self.current: Attempt | None = None
        self._times_assigned = 0
        self._clock = clock
        self._send_attempt = send
        self._timer: SimTimer | None = None

    @property
    def identity(self) -> str:
        """The identity under which it owns partitions: that of a static member stays the same after a restart."""
        return self.instance_id or self.member_id

    # --- Calls of the application

    def start(self) -> None:
        self._join()

    def stop(self) -> None:
        """Sends LeaveGroup, and does not wait for the response."""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self._send(LeaveGroupRequest(group_id=GROUP, members=[identity]), PATIENCE_MS)
        self.kill()

    def kill(self) -> None:
        self.is_alive = False
        self._give_up()

    def change_its_mind(self) -> None:
        """Subscribes to other topics, and joins again."""
        self.metadata += b"+"
        self._join()

    def join_again(self) -> None:
        """Joins again with the same topics, as a leader does when topics have changed."""
        self._join()

    # --- Sending

    def _join(self) -> None:
        names = ("cooperative", "range") if self.number % 2 else ("range", "cooperative")
        self._send(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=name, metadata=self.metadata) for name in names],
            ),
            JOIN_PATIENCE_MS,
        )

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        self._send(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocol_name=self.protocol_name,
                assignments=assignments,
            ),
            JOIN_PATIENCE_MS,
        )

    def _beat(self) -> None:
        self._send(
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
            ),
            PATIENCE_MS,
        )

    def _send(self, request: Request, patience_ms: float) -> None:
        if not self.is_alive:
            return
        self._give_up()
        attempt = self.current = Attempt(self, request)
        self._later(patience_ms, lambda: self._send(request, patience_ms))
        self._send_attempt(attempt)

    def _give_up(self) -> None:
        given_up, self.current = self.current, None
        if given_up is not None and given_up.answer is not None:
            given_up.answer.abandon()
        if self._timer is not None:
            self._timer.cancel()

    def _later(self, delay_ms: float, step: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_ms, step)

    # --- Responses

    def hear(self, response: object) -> None:
        self.current = None
        match response:
            case ApiError():
                self._react(response.code)
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
                self._join()
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                self._joined(response)
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                self.assigned_in = self.generation
                self.assignment = [int(number) for number in response.assignment.split(b",") if number]
                self._later(HEARTBEAT_MS, self._beat)
            case HeartbeatResponse(error_code=ErrorCode.NONE):
                self._later(HEARTBEAT_MS, self._beat)
            case JoinGroupResponse() | HeartbeatResponse():
                self._react(ErrorCode(response.error_code))
            case _:
                raise AssertionError(f"unexpected: {response}")

    def _joined(self, response: JoinGroupResponse) -> None:
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.protocol_name = response.protocol_name
        assignments = []
        if response.leader == response.member_id and not response.skip_assignment:
            self._times_assigned += 1
            owners = [member.member_id for member in response.members]
            owners.sort(reverse=self._times_assigned % 2 > 0)  # A different assignment each time.
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=owner,
                    assignment=b",".join(b"%d" % number for number in range(index, PARTITIONS, len(owners))),
                )
                for index, owner in enumerate(owners)
            ]
        self._sync(assignments)

    def _react(self, code: ErrorCode) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_fenced = True
            self.kill()
        elif code in _START_OVER:
            self.member_id = ""
            self.generation = -1
            self.assigned_in = None
            self._later(RETRY_MS, self._join)
        elif code in _JOIN_AGAIN:
            self._join()
        else:
            assert code.retriable, f"a consumer was told {code.name}"
            self._later(RETRY_MS, self._join)
