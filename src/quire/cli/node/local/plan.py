"""What each node of a local cluster is configured with.

Node i listens at the ports of the first node plus 10 (i - 1), and keeps its data in `node-i` of every data directory.
The first node is configured like a single one. The controllers listen where the description of the cluster says,
because their addresses are in the metadata log. Below three nodes the first one is the only controller, otherwise the
first three are; all nodes are brokers. From three nodes on, topics have three replicas, internal ones too.
"""

from typing import NamedTuple

from quire.cli.node.config import StartOptions, load_config_of
from quire.cli.node.local.description import Description, node_folder
from quire.cli.node.local.ports import ReservedPorts
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.listeners import Listener
from quire.config.standalone import check_replication, replication_defaults
from quire.config.topology import Topology
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.seams import Random

PORTS_APART = 10
CONTROLLERS = 3
_OURS = ("node.id", "broker.id", "process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers")


class PlannedNode(NamedTuple):
    id: int
    config: BrokerConfig

    @property
    def name(self) -> str:
        return f"node-{self.id}"


def load_base(options: StartOptions) -> BrokerConfig:
    """The configuration that all nodes share: that of a single node. ConfigError if it says what --nodes decides."""
    for assignment in options.assignments:
        key = assignment.partition("=")[0].strip()
        if key in _OURS:
            raise ConfigError(key, f"--nodes and --set {assignment} contradict each other: --nodes sets {key} itself.")
    return load_config_of(options)


def first_voters(base: BrokerConfig, nodes: int, ports: ReservedPorts, random: Random) -> VoterSet:
    """The controllers of a new cluster, where they will listen."""
    listener = base.topology.advertised_controller_listeners[0]
    bound = base.topology.controller_listeners[0]
    voters = []
    for node_id in range(1, (CONTROLLERS if nodes >= CONTROLLERS else 1) + 1):
        port = shifted(listener, node_id).port or ports.take(bound.host)
        endpoint = Endpoint(listener.name, listener.host, port)
        voters.append(Voter(ReplicaKey(node_id, random.uuid()), (endpoint,)))
    return VoterSet(voters)


def plan_nodes(
    options: StartOptions, base: BrokerConfig, description: Description, ports: ReservedPorts
) -> list[PlannedNode]:
    nodes = []
    used: dict[int, str] = {}
    defaults = replication_defaults(description.nodes)
    for node_id in range(1, description.nodes + 1):
        settings = _settings(base, description.voters, node_id, ports)
        planned = PlannedNode(node_id, load_config_of(options, settings, defaults))
        check_replication(planned.config.get_int, description.nodes)
        _check_ports_differ(planned, used)
        nodes.append(planned)
    return nodes


def shifted(listener: Listener, node_id: int) -> Listener:
    """Where node `node_id` has this listener of the first one; a free port stays one."""
    port = listener.port and listener.port + PORTS_APART * (node_id - 1)
    if port > 65535:
        raise ConfigError(
            "listeners", f"node {node_id} would listen at port {port}, beyond 65535: choose a lower port with --listen."
        )
    return listener._replace(port=port)


def _settings(base: BrokerConfig, voters: VoterSet, node_id: int, ports: ReservedPorts) -> dict[str, str]:
    """What distinguishes a node from a single one."""
    topology = base.topology
    voter = voters.get(node_id)
    listeners = [_with_port(shifted(each, node_id), ports) for each in topology.broker_listeners]
    bound = {listener.name: listener.port for listener in listeners}
    if voter is not None:
        listeners += _controller_listeners(topology, voter, ports)
    settings = {
        "node.id": str(node_id),
        "broker.id": str(node_id),
        "process.roles": "broker" if voter is None else "broker,controller",
        "listeners": ",".join(map(str, listeners)),
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": ",".join(
            str(_address(endpoint)) for each in voters for endpoint in each.endpoints
        ),
        "log.dirs": ",".join(node_folder(directory, node_id) for directory in base.log_dirs),
    }
    if base.get("metadata.log.dir"):
        settings["metadata.log.dir"] = node_folder(base.metadata_log_dir, node_id)
    if base.get("advertised.listeners"):
        advertised = [shifted(each, node_id) for each in topology.advertised_listeners]
        settings["advertised.listeners"] = ",".join(
            str(each._replace(port=each.port or bound[each.name])) for each in advertised
        )
    return settings


def _controller_listeners(topology: Topology, voter: Voter, ports: ReservedPorts) -> list[Listener]:
    first, *others = topology.controller_listeners
    return [
        first._replace(port=voter.endpoints[0].port),
        *(_with_port(shifted(each, voter.key.id), ports) for each in others),
    ]


def _with_port(listener: Listener, ports: ReservedPorts) -> Listener:
    return listener if listener.port else listener._replace(port=ports.take(listener.host))


def _address(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def _check_ports_differ(node: PlannedNode, used: dict[int, str]) -> None:
    topology = node.config.topology
    for listener in (*topology.broker_listeners, *topology.controller_listeners):
        other = used.setdefault(listener.port, node.name)
        if other != node.name:
            raise ConfigError(
                "listeners",
                f"{other} and {node.name} would both listen at port {listener.port}, because the nodes are "
                f"{PORTS_APART} ports apart: choose listeners that are closer together, or another --listen.",
            )
