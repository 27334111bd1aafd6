"""The commands of the transcripts of classic groups: named clients, one group, virtual time.

shard [setting=value ...]       begins
join NAME [option=value ...]    JoinGroup; options are remembered: version, instance, protocols=range,roundrobin,
                                topics=a,b, session, rebalance, type; id=... (or id=none) for this once
sync NAME [A=0,1 B=2 ...]       SyncGroup, with the partitions for each client if NAME is to assign
beat NAME [generation=n]        Heartbeat
commit NAME [generation=n]      whether the member may commit offsets
leave NAME ... [version=n]      LeaveGroup, of several at once by version 3 and later
hang-up NAME                    its connection closes while it waits
restart NAME                    it forgets its id, and joins as another process
wait MS                         time passes
hold / written / lost [CODE]    records are not committed until told, or the response is lost
reload                          another node coordinates, and then this one again
group                           what DescribeGroups shows
"""

import re
from typing import Any

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.record import StateRecord
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import GroupMetadataValue
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinators.group.classic.classic_machine import Request, classic_shard

GROUP = "readers"

_DEFAULTS = {
    "version": "9",
    "instance": "",
    "protocols": "range",
    "topics": "t",
    "session": "10000",
    "rebalance": "60000",
    "type": "consumer",
}


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.options = dict(_DEFAULTS)
        self.member_id = ""
        self.generation = -1
        self.protocol_name = ""
        self.waits_for: Pending[Any] | None = None

    @property
    def instance_id(self) -> str | None:
        return self.options["instance"] or None


class CountedIds:
    """Ids that a reader can follow: 1, 2, 3."""

    def __init__(self) -> None:
        self._count = 0

    def uuid(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(16, "big")

    def random_bytes(self, size: int) -> bytes:
        raise AssertionError("nothing else is random here")

    def below(self, limit: int) -> int:
        raise AssertionError("nothing else is random here")


class ClassicStage:
    def __init__(self, settings: list[str]) -> None:
        self.story: list[str] = []
        self.shard = classic_shard(dict(setting.split("=") for setting in settings))
        self.shard.random = CountedIds()
        self.shard.reload()
        self.shard.on_append = self._show_record
        self._clients: dict[str, Client] = {}
        self._began_ms = 0.0
        self._state = "not there"

    # --- Commands

    def command(self, name: str, words: list[str]) -> None:
        self._began_ms = self.shard.clock.monotonic_ms()
        options = dict(word.split("=") for word in words if "=" in word)
        clients = [self._client(word) for word in words if "=" not in word]
        match name, words:
            case "join", [_, *_]:
                self._join(clients[0], options)
            case "sync", [_, *_]:
                self._sync(clients[0], options)
            case "beat", [_, *_]:
                self._beat(clients[0], options)
            case "commit", [_, *_]:
                self._commit(clients[0], options)
            case "leave", [_, *_]:
                self._leave(clients, options)
            case "hang-up", [_]:
                waits_for, clients[0].waits_for = clients[0].waits_for, None
                assert waits_for is not None, f"{clients[0].name} does not wait"
                waits_for.abandon()
                self.shard.wait(0)
            case "restart", [_]:
                clients[0].member_id = ""
                clients[0].generation = -1
            case "wait", [duration_ms]:
                self.shard.wait(float(duration_ms))
            case "hold", []:
                self.shard.holding = True
            case "written", []:
                self.shard.holding = False
                self.shard.commit()
            case "lost", codes:
                self.shard.holding = False
                self.shard.fail(ErrorCode[codes[0]] if codes else ErrorCode.COORDINATOR_NOT_AVAILABLE)
            case "reload", []:
                self.shard.reload()
            case "group", []:
                self._describe()
            case _:
                raise AssertionError(f"no such command: {name} {' '.join(words)}")
        self._show_state()

    def _join(self, client: Client, options: dict[str, str]) -> None:
        member_id = options.pop("id", client.member_id)
        client.options |= options
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(client.options["session"]),
            rebalance_timeout_ms=int(client.options["rebalance"]),
            member_id="" if member_id == "none" else self._long(member_id),
            group_instance_id=client.instance_id,
            protocol_type=client.options["type"],
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=_subscription(client.options["topics"]))
                for name in client.options["protocols"].split(",")
            ],
        )
        self._send(client, int(client.options["version"]), request)

    def _sync(self, client: Client, options: dict[str, str]) -> None:
        assignments = [
            SyncGroupRequestAssignment(member_id=self._clients[name].member_id, assignment=partitions.encode())
            for name, partitions in options.items()
            if name in self._clients
        ]
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", client.generation)),
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type=client.options["type"],
            protocol_name=options.get("protocol", client.protocol_name),
            assignments=assignments,
        )
        self._send(client, 5, request)

    def _beat(self, client: Client, options: dict[str, str]) -> None:
        generation = int(options.get("generation", client.generation))
        self._send(
            client,
            4,
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=generation,
                member_id=client.member_id,
                group_instance_id=client.instance_id,
            ),
        )

    def _commit(self, client: Client, options: dict[str, str]) -> None:
        generation = int(options.get("generation", client.generation))
        group = self.shard.machine.classic.offsets_only(GROUP)
        try:
            group.check_offset_commit(
                client.member_id, client.instance_id, generation, is_transactional=False, api_version=9
            )
        except ApiError as error:
            self._tell(f"{client.name} <- {error.code.name}")
        else:
            self._tell(f"{client.name} may commit")

    def _leave(self, clients: list[Client], options: dict[str, str]) -> None:
        version = int(options.get("version", 5))
        request = LeaveGroupRequest(group_id=GROUP, member_id=clients[0].member_id)
        if version >= 3:
            request = LeaveGroupRequest(
                group_id=GROUP,
                members=[
                    MemberIdentity(member_id=client.member_id, group_instance_id=client.instance_id)
                    for client in clients
                ],
            )
        self._send(clients[0], version, request)

    def _describe(self) -> None:
        group = self.shard.machine.groups.get(GROUP)
        if group is None:
            self._tell("there is no such group")
            return
        assert isinstance(group, ClassicGroup)
        described = self.shard.machine.classic.describe(group)
        self._tell(f"{described.group_state}, protocol {described.protocol_type}/{described.protocol_data}")
        for member in described.members:
            static = f" static {member.group_instance_id}," if member.group_instance_id else ""
            self._tell(
                f"  {member.member_id}:{static} reads {_topics(member.member_metadata)},"
                f" has {member.member_assignment.decode() or 'nothing'}"
            )

    # --- Requests and responses

    def _send(self, client: Client, version: int, request: Request) -> None:
        caller = Caller(client.name, "host", version)

        answer = self.shard.run(lambda now_ms: self.shard.machine.handle(request, caller, now_ms))
        if not answer.done:
            client.waits_for = answer
            self._tell(f"{client.name} waits")
        answer.when_done(lambda response: self._hear(client, response))

    def _hear(self, client: Client, response: object) -> None:
        client.waits_for = None
        match response:
            case ApiError():
                self._tell(f"{client.name} <- {response.code.name}")
            case JoinGroupResponse():
                self._hear_join(client, response)
            case SyncGroupResponse():
                self._tell(f"{client.name} <- assigned {response.assignment.decode() or 'nothing'}")
            case HeartbeatResponse():
                self._tell(f"{client.name} <- {_error(response.error_code) or 'fine'}")
            case LeaveGroupResponse():
                self._hear_leave(client, response)

    def _hear_join(self, client: Client, response: JoinGroupResponse) -> None:
        error = _error(response.error_code)
        if response.member_id:
            client.member_id = response.member_id
        if error:
            self._tell(f"{client.name} <- {error}{f', be {response.member_id}' if response.member_id else ''}")
            return
        client.generation = response.generation_id
        client.protocol_name = response.protocol_name or ""
        told = f"{client.name} <- joined generation {response.generation_id} as {response.member_id}"
        told += f", {response.protocol_name}, leader {response.leader}"
        if response.members:
            told += f", members {' '.join(member.member_id for member in response.members)}"
        if response.skip_assignment:
            told += ", need not assign"
        self._tell(told)

    def _hear_leave(self, client: Client, response: LeaveGroupResponse) -> None:
        left = [
            f"{member.member_id or member.group_instance_id or 'nobody'} {_error(member.error_code) or 'left'}"
            for member in response.members
        ]
        self._tell(f"{client.name} <- {', '.join(left) or _error(response.error_code) or 'left'}")

    # --- Text of the transcript

    def _client(self, name: str) -> Client:
        return self._clients.setdefault(name, Client(name))

    def _tell(self, line: str) -> None:
        passed_ms = self.shard.clock.monotonic_ms() - self._began_ms
        self.story.append(_short(f"after {passed_ms:.0f} ms: {line}" if passed_ms else line))

    def _show_record(self, record: StateRecord) -> None:
        value = record.value
        assert isinstance(value, GroupMetadataValue)
        members = "; ".join(f"{member.member_id} {member.assignment.decode() or '-'}" for member in value.members)
        self._tell(f"writes generation {value.generation}: {members or 'nobody'}")

    def _show_state(self) -> None:
        group = self.shard.machine.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return
        state = f"{group.state_name}, generation {group.generation}"
        if state != self._state:
            self._state = state
            self.story.append(f"= {state}")

    def _long(self, member_id: str) -> str:
        """The full member id for its short form in the transcript."""
        name, _, number = member_id.rpartition("-")
        return member_id if not number.isdigit() or len(number) > 6 else f"{name}-{_uuid(int(number))}"


def begin(words: list[str]) -> ClassicStage:
    assert words[0] == "shard", "a story begins with: shard [setting=value ...]"
    return ClassicStage(words[1:])


def _uuid(number: int) -> str:
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _short(line: str) -> str:
    return re.sub(r"-00000000-0000-0000-0000-([0-9a-f]{12})", lambda found: f"-{int(found[1], 16)}", line)


def _error(code: int) -> str:
    return ErrorCode(code).name if code else ""


def _subscription(topics: str) -> bytes:
    """A consumer's subscription in version 0: its version, the topics, no user data."""
    names = topics.split(",")
    out = b"\0\0" + len(names).to_bytes(4, "big")
    for name in names:
        out += len(name).to_bytes(2, "big") + name.encode()
    return out + (-1).to_bytes(4, "big", signed=True)


def _topics(subscription: bytes) -> str:
    return re.sub(r"[^a-z]+", " ", subscription[6:].decode("latin-1")).strip() or "?"
