"""Where other replicas listen: from the voter set, from what leaders say of themselves, and from the configuration.

A replica that knows no voters yet, such as a new broker, asks `controller.quorum.bootstrap.servers`. These have no node
ids, so they get negative ones: -2, -3 and so on, as in Kafka.
"""

from collections.abc import Sequence

from quire.address import Address
from quire.raft.replicas import Endpoint, VoterSet
from quire.raft.wire import LeaderEndpoint

FIRST_BOOTSTRAP_ID = -2


class Addresses:
    __slots__ = ("_bootstrap", "_learned", "_listener_names")

    def __init__(self, listener_names: Sequence[str] = (), bootstrap: Sequence[Address] = ()) -> None:
        """`listener_names` are this node's `controller.listener.names`, the preferred one first."""
        self._listener_names = [name.upper() for name in listener_names]
        self._bootstrap = {FIRST_BOOTSTRAP_ID - number: address for number, address in enumerate(bootstrap)}
        self._learned: dict[int, tuple[int, Address]] = {}
        """Of each leader, the last epoch in which it said where it listens, and where."""

    @property
    def bootstrap_ids(self) -> list[int]:
        return list(self._bootstrap)

    def learn(self, leader: LeaderEndpoint, epoch: int) -> None:
        """Where the leader of an epoch listens, as it reports. An earlier epoch changes nothing."""
        known = self._learned.get(leader.node_id)
        if known is None or known[0] <= epoch:
            self._learned[leader.node_id] = (epoch, Address(leader.host, leader.port))

    def of(self, node_id: int, voters: VoterSet, leads_epoch: int | None = None) -> Address | None:
        """`leads_epoch` is set for the present leader: what it says of itself is newer than this log's voter set."""
        if node_id in self._bootstrap:
            return self._bootstrap[node_id]
        learned_in, learned = self._learned.get(node_id, (None, None))
        if learned is not None and learned_in == leads_epoch:
            return learned
        voter = voters.get(node_id)
        endpoint = None if voter is None else self.choose(voter.endpoints)
        return learned if endpoint is None else Address(endpoint.host, endpoint.port)

    def choose(self, endpoints: Sequence[Endpoint]) -> Endpoint | None:
        """The endpoint of a listener that this node uses too."""
        by_name = {endpoint.name.upper(): endpoint for endpoint in endpoints}
        for name in self._listener_names:
            if name in by_name:
                return by_name[name]
        return endpoints[0] if endpoints else None
