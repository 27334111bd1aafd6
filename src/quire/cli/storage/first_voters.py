"""Which voters `quire storage format` writes: those of --standalone, --initial-controllers or the settings.

Every combination that would make a node which cannot take part in its cluster is refused with what to do instead.
"""

from typing import NoReturn

import click

from quire.config.broker_config import BrokerConfig
from quire.config.topology import Topology
from quire.console.failure import EXIT_USAGE, Failure
from quire.controller.initial_voters import InitialVotersError, parse_initial_voters
from quire.raft.control_state import NO_VOTERS
from quire.raft.replicas import VoterSet

_OPTIONS = ("--standalone", "--initial-controllers", "--no-initial-controllers")


def check_one_choice(standalone: bool, initial: str | None, none: bool) -> str | None:
    """The option that was given, if any."""
    given = [option for option, used in zip(_OPTIONS, (standalone, initial is not None, none), strict=True) if used]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} contradict each other: use one of them.")
    return given[0] if given else None


def first_voters(config: BrokerConfig, option: str | None, initial: str | None) -> VoterSet | None:
    """For `format_node`: None if this node is the only voter, or if the settings name the voters."""
    topology = config.topology
    if topology.voters:
        if option is not None:
            _refuse(
                f"controller.quorum.voters is set, so the quorum is static and {option} has no effect: remove one of "
                "them (without controller.quorum.voters the quorum is dynamic, and controllers can be added later)."
            )
        return NO_VOTERS
    if not topology.is_controller:
        if option == "--standalone":
            _refuse("--standalone is for a controller, and process.roles has no controller: remove it.")
        return _parsed(config, initial) if initial is not None else NO_VOTERS
    if option == "--no-initial-controllers":
        return NO_VOTERS
    if initial is not None:
        return _parsed(config, initial)
    if option is None and not topology.is_alone:
        servers = ",".join(topology.bootstrap_servers)
        _refuse(
            f"controller.quorum.bootstrap.servers={servers} says that this controller is not the only one: add "
            "--initial-controllers with the controllers of a new cluster, --no-initial-controllers if the cluster "
            "exists already, or --standalone if this is its first controller."
        )
    return None


def check_cluster_id_given(config: BrokerConfig, option: str | None, cluster_id: str | None) -> None:
    if cluster_id is None and option != "--standalone" and not config.topology.is_alone:
        _refuse(
            "--cluster-id is missing: all nodes of a cluster are formatted with the same one; create it once with "
            "`quire storage random-uuid`."
        )


def _parsed(config: BrokerConfig, initial: str) -> VoterSet:
    try:
        voters = parse_initial_voters(initial, config.get_list("controller.listener.names")[0])
    except InitialVotersError as error:
        raise click.BadParameter(str(error), param_hint="--initial-controllers") from error
    votes = config.node_id in voters.ids
    if config.topology.is_controller and not votes:
        _refuse(
            f"--initial-controllers does not name this controller, node {config.node_id}: add it, or use "
            "--no-initial-controllers if it is to join the cluster later."
        )
    if votes and not config.topology.is_controller:
        _refuse(
            f"--initial-controllers names node {config.node_id}, which is only a broker: leave it out, or add "
            "controller to process.roles."
        )
    _check_own_port(config.topology, voters)
    return voters


def _check_own_port(topology: Topology, voters: VoterSet) -> None:
    """The others would look for this controller at another port, for example that for clients."""
    own = voters.get(topology.node_id)
    listeners = (*topology.controller_listeners, *topology.advertised_controller_listeners)
    if own is None or any(each.port in (0, own.endpoints[0].port) for each in listeners):
        return
    _refuse(
        f"--initial-controllers has this controller at port {own.endpoints[0].port}, and its listeners have "
        f"{listeners[0]}: correct one of them (advertised.listeners, if others reach it at another port)."
    )


def _refuse(sentence: str) -> NoReturn:
    raise Failure(sentence, EXIT_USAGE)
