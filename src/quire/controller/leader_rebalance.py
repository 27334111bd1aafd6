"""Gives leaderships back to the first replicas, by itself: `auto.leader.rebalance.enable`.

After a failover the next replica leads, also when the first one is back, so a cluster whose brokers restarted one after
the other has most of its leaders on few brokers. Every `leader.imbalance.check.interval.seconds` the active controller
looks at all partitions, and elects each first replica that is up and in the ISR. As in Kafka's KRaft, no percentage
decides whether that is worth it.

Everything acknowledged is in the ISR, so no record is lost. Clients of a partition ask for its new leader once.
"""

import logging

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.command_runner import CommandRunner
from quire.controller.controller_result import Portions
from quire.metadata.image import ClusterImage
from quire.seams import Clock, Timer

logger = logging.getLogger("quire.controller")

_LOOKED_AT_PER_PORTION = 50
"""Partitions that stay as they are cost little."""


def restore_preferred(image: ClusterImage, config: BrokerConfig) -> Portions[int]:
    """Returns how many leaderships it moved."""
    moved = 0
    everything = elections.still_there(image, list(image.topics_by_name.values()))
    for looked_at, (topic, index) in enumerate(everything, 1):
        partition = topic.partitions[index]
        change = None
        if partition.leader != partition.preferred_leader:
            change = elections.elect_preferred(image, config, topic, index)
        if change is not None:
            moved += 1
            yield [change]
        elif looked_at % _LOOKED_AT_PER_PORTION == 0:
            yield []
    return moved


class LeaderRebalance:
    """Lives for one term of the active controller."""

    def __init__(self, config: BrokerConfig, commands: CommandRunner, clock: Clock) -> None:
        self._config = config
        self._commands = commands
        self._clock = clock
        self._timer: Timer | None = None
        self._is_running = False

    def start(self) -> None:
        if self._config.get_bool("auto.leader.rebalance.enable"):
            self._wait()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        interval_ms = self._config.get_int("leader.imbalance.check.interval.seconds") * 1000
        self._timer = self._clock.call_later(interval_ms, self._check)

    def _check(self) -> None:
        """Not while an earlier check still runs, nor while the metadata log has no room for what is urgent."""
        self._wait()
        if not self._is_running and not self._commands.waits_for_room:
            self._commands.write_to_the_end(self._rebalance)

    def _rebalance(self, image: ClusterImage) -> Portions[None]:
        self._is_running = True
        try:
            moved = yield from restore_preferred(image, self._config)
        finally:
            self._is_running = False
        if moved:
            logger.info("leaders rebalanced moved=%d", moved)
