"""The settings of each node in a simulated cluster: its roles, its listeners, and who votes."""

from collections.abc import Sequence

from simulator.hosts import CONTROLLER_PORT, NODE_PORT

BROKER, CONTROLLER, BOTH = "broker", "controller", "broker,controller"


def settings_of(names: Sequence[str], roles: Sequence[str], number: int) -> dict[str, str]:
    """`number` is the node's place in `names`; node ids begin with 1."""
    name = names[number]
    listeners = []
    if BROKER in roles[number]:
        listeners.append(f"PLAINTEXT://{name}:{NODE_PORT}")
    if CONTROLLER in roles[number]:
        listeners.append(f"CONTROLLER://{name}:{CONTROLLER_PORT}")
    voters = [
        f"{each + 1}@{host}:{CONTROLLER_PORT}"
        for each, (host, role) in enumerate(zip(names, roles, strict=True))
        if CONTROLLER in role
    ]
    return {
        "process.roles": roles[number],
        "node.id": str(number + 1),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
    }
