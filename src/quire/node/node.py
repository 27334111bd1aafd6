"""A node: broker and controller in one process, put together from its parts and the five seams.

Starting goes from the bottom up: take the data directories, open the metadata log and win its (one-node) election,
replay what is committed, listen, register as a broker, and when the controller has let this broker in, serve. Requests
that come earlier wait. Stopping goes the other way and ends with the clean-shutdown mark. Whatever of this fails is told
once through `failed`; the caller ends the process.
"""

import logging
from collections.abc import Callable

from quire.config.broker_config import BrokerConfig
from quire.controller.controller import Controller
from quire.metadata.delta import ImageDelta
from quire.metadata.image import BrokerImage, ClusterImage, PartitionImage
from quire.network.limits import Limits
from quire.network.server import Server
from quire.node.authorizer import Authorizer
from quire.node.broker_lifecycle import BrokerLifecycle
from quire.node.directories import open_directories
from quire.node.dispatch import Dispatcher
from quire.node.faults import Faults
from quire.node.fetch_sessions import FetchSessions
from quire.node.partitions import Partitions
from quire.node.producer_ids import ProducerIds
from quire.node.throttle import Throttle
from quire.pending import Pending
from quire.seams import Clock, Disk, Jobs, Network, Random, Timer
from quire.storage.log_directory import LogDirectory

log = logging.getLogger("quire.node")

STOP_DEADLINE_MS = 5_000


class Node:
    def __init__(
        self, config: BrokerConfig, *, clock: Clock, random: Random, disk: Disk, jobs: Jobs, network: Network
    ) -> None:
        self.config = config
        self.clock = clock
        self.random = random
        self.disk = disk
        self.jobs = jobs
        self.node_id = config.node_id
        self.authorizer = Authorizer()
        self.throttle = Throttle()
        self.faults: Faults | None = None
        """Failures on request; only `quire.testing` switches them on."""
        self.fetch_sessions = FetchSessions(config.get_int("max.incremental.fetch.session.cache.slots"), random)
        self.fetch_max_bytes = config.get_int("fetch.max.bytes")
        self.ready: Pending[str] = Pending()
        """Completed with `host:port` of the first broker listener when the node serves."""
        self.failed: Callable[[str], None] = lambda reason: log.error("the node cannot go on: %s", reason)
        self.ports: dict[str, int] = {}
        """The bound port of each listener."""
        self._dispatcher = Dispatcher(self)
        self.server = Server(network, clock, self._dispatcher, limits_of(config))
        self._controller_listeners = {listener.name for listener in config.topology.controller_listeners}
        self._timers: list[Timer] = []
        self._stopping = False
        config.when_changed(self._settings_changed)

    # Starting
