"""An operator who adds and removes voters of the metadata quorum, one at a time, and upgrades a static quorum.

The requests go straight to the active controller. What was acknowledged must hold at the end; what was refused or not
answered may have happened or not.
"""

from collections.abc import Sequence

from quire.metadata.features import KRAFT_VERSION
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from quire.raft.metadata_log import MetadataLog
from quire.raft.replicas import ReplicaKey
from quire.raft.voter_changes import DYNAMIC_QUORUM
from simulator.clients.client import Scene, SimClient
from simulator.cluster_settings import LISTENER
from simulator.hosts import CONTROLLER_PORT
from simulator.machine import Machine
from simulator.violation import Violation
from simulator.white_box.active_controllers import ActiveControllers

KEPT = "acknowledged changes of the voters are kept"
PAUSE_MS = 2000.0
REFUSALS = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.INVALID_REQUEST,
)
UPGRADE = 1


class VoterOperator(SimClient):
    def __init__(self, scene: Scene, machines: Sequence[Machine], *, auto_join: bool) -> None:
        """With `auto_join` a controller that was removed joins again by itself."""
        super().__init__(scene, "voter operator")
        self._machines = [machine for machine in machines if machine.votes]
        self._controllers = ActiveControllers(scene, machines, self.random)
        self._auto_join = auto_join
        self._votes: dict[ReplicaKey, bool | None] = {}
        """What the last answer about a controller said of it; None if that is not known."""

    async def run(self) -> None:
        while not self.scene.finishing:
            await self.scene.sleep(self.random.between(0.0, PAUSE_MS))
            active = self._controllers.any()
            if active is None:
                continue
            assert active.node is not None
            log = active.node.metadata.log
            if log.kraft_version < DYNAMIC_QUORUM:
                await self._upgrade(active)
            else:
                await self._change(active, log)

    async def _upgrade(self, active: Machine) -> None:
        key = FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=DYNAMIC_QUORUM, upgrade_type=UPGRADE)
        request = UpdateFeaturesRequest(feature_updates=[key])
        response = await self._controllers.ask(active, lambda controller: controller.update_features(request))
        if response is not None:
            what = f"the upgrade of {KRAFT_VERSION}: {response.error_message}"
            self.expect(response.error_code, what, *REFUSALS, ErrorCode.INVALID_UPDATE_VERSION)

    async def _change(self, active: Machine, log: MetadataLog) -> None:
        machine = self.random.choice(self._machines)
        key = _key_of(machine)
        if key is None:
            return
        present = log.voters.get(machine_id := key.id)
        removes = present is not None and present.key == key
        self.scene.tell(f"{self.name}: {'remove' if removes else 'add'} {machine.name} (node {machine_id})")
        self._votes[key] = None
        error = await (self._remove(active, key) if removes else self._add(active, key, machine.name))
        if error is ErrorCode.NONE:
            self._votes[key] = not removes

    async def _add(self, active: Machine, key: ReplicaKey, host: str) -> ErrorCode | None:
        request = AddRaftVoterRequest(
            cluster_id=None,
            voter_id=key.id,
            voter_directory_id=key.directory_id,
            listeners=[Listener(name=LISTENER, host=host, port=CONTROLLER_PORT)],
        )
        response = await self._controllers.ask(active, lambda controller: controller.add_raft_voter(request))
        if response is None:
            return None
        return self.expect(response.error_code, f"adding {host}: {response.error_message}", *REFUSALS)

    async def _remove(self, active: Machine, key: ReplicaKey) -> ErrorCode | None:
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=key.id, voter_directory_id=key.directory_id)
        response = await self._controllers.ask(active, lambda controller: controller.remove_raft_voter(request))
        if response is None:
            return None
        return self.expect(response.error_code, f"removing node {key.id}: {response.error_message}", *REFUSALS)

    def check_kept(self) -> None:
        """All nodes have the same log."""
        node = self._machines[0].node
        assert node is not None
        votes = {voter.key for voter in node.metadata.log.voters}
        for key, expected in self._votes.items():
            if expected is None or (expected is False and self._auto_join):
                continue
            if (key in votes) is not expected:
                told = "votes" if expected else "does not vote"
                raise Violation(KEPT, f"it was acknowledged that node {key.id} {told}; the voters are {votes}")


def _key_of(machine: Machine) -> ReplicaKey | None:
    """None while the node does not work."""
    node = machine.node
    return node.metadata.log.key if node is not None and hasattr(node, "metadata") else None
