"""The settings of each node in a simulated cluster: its roles, its listeners, and who votes."""

from collections.abc import Sequence

from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from simulator.hosts import CONTROLLER_PORT, NODE_PORT
from simulator.random import SimRandom

BROKER, CONTROLLER, BOTH = "broker", "controller", "broker,controller"
LISTENER = "CONTROLLER"


def settings_of(names: Sequence[str], roles: Sequence[str], number: int) -> dict[str, str]:
    """Of a static quorum. `number` is the node's place in `names`; node ids begin with 1."""
    return _node_settings(names[number], roles[number], number) | {
        "controller.quorum.voters": ",".join(
            f"{node_id}@{host}:{CONTROLLER_PORT}" for node_id, host in _controllers(names, roles)
        )
    }


def dynamic_settings_of(names: Sequence[str], roles: Sequence[str], number: int, *, auto_join: bool) -> dict[str, str]:
    """Of a dynamic quorum: the metadata log says who votes."""
    return _node_settings(names[number], roles[number], number) | {
        "controller.quorum.bootstrap.servers": ",".join(
            f"{host}:{CONTROLLER_PORT}" for _, host in _controllers(names, roles)
        ),
        "controller.quorum.auto.join.enable": str(auto_join and CONTROLLER in roles[number]).lower(),
    }


def first_voters(names: Sequence[str], roles: Sequence[str], count: int, random: SimRandom) -> VoterSet:
    """The voters that the nodes of a dynamic quorum are formatted with."""
    return VoterSet(
        Voter(ReplicaKey(node_id, random.uuid()), (Endpoint(LISTENER, host, CONTROLLER_PORT),))
        for node_id, host in _controllers(names, roles)[:count]
    )


def _node_settings(name: str, roles: str, number: int) -> dict[str, str]:
    listeners = []
    if BROKER in roles:
        listeners.append(f"PLAINTEXT://{name}:{NODE_PORT}")
    if CONTROLLER in roles:
        listeners.append(f"{LISTENER}://{name}:{CONTROLLER_PORT}")
    return {
        "process.roles": roles,
        "node.id": str(number + 1),
        "listeners": ",".join(listeners),
        "controller.listener.names": LISTENER,
    }


def _controllers(names: Sequence[str], roles: Sequence[str]) -> list[tuple[int, str]]:
    """Node ids and hosts."""
    return [
        (number, name) for number, (name, role) in enumerate(zip(names, roles, strict=True), 1) if CONTROLLER in role
    ]
