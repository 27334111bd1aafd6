"""The checks that are made when faults have ended and no client works: everything must agree with everything.

All nodes have the same metadata. Every transaction has ended, and all of it or none is visible. Every log is read from
start to end once more, and replicas are equal. A node holds nothing for clients that are gone.
"""

from collections.abc import Sequence
from functools import partial

from simulator.audits import Audits
from simulator.clients.client import Scene
from simulator.clients.rest import Rest
from simulator.machine import Machine
from simulator.stepper import Stepper
from simulator.tasks import Task
from simulator.time_limits import FINISH_LIMIT_MS, RELEASE_LIMIT_MS, REPLICATION_LIMIT_MS
from simulator.white_box.scribe import Scribe
from simulator.white_box.voter_operator import VoterOperator
from simulator.white_box.white_box import WhiteBox

POLL_MS = 20.0


class FinalChecks:
    def __init__(
        self,
        scene: Scene,
        machines: Sequence[Machine],
        stepper: Stepper,
        white_box: WhiteBox,
        audits: Audits,
        scribes: Sequence[Scribe],
        operator: VoterOperator | None,
    ) -> None:
        self._scene = scene
        self._machines = machines
        self._stepper = stepper
        self._white_box = white_box
        self._audits = audits
        self._scribes = scribes
        self._operator = operator
        self._rests = 0

    def run(self) -> None:
        self._check_metadata()
        self._scene.at_rest = True
        if self._scene.nodes:
            self._end_transactions()
            self._audit_everything()
            for book in self._scene.ledger.live_partitions():
                self._scene.checker.losses.check_tentative(book)
            self._check_equal_replicas()
        self._scene.at_rest = False

    def check_nothing_is_left(self) -> None:
        """No client is connected, so no node may hold anything for one; other nodes stay connected."""
        if self._scene.nodes:
            for machine in self._machines:
                what = "the release of what requests held"
                self._stepper.run_until(partial(self._holds_nothing, machine), RELEASE_LIMIT_MS, what)

    def _holds_nothing(self, machine: Machine) -> bool:
        node, nodes = machine.node, {each.name for each in self._machines}
        assert node is not None
        counters = node.server.counters
        leaders = [each.leader for each in node.partitions if each.leader is not None]
        waits = [(each.partition.waiting_fetches, each.commit_waits, each.flush_waits) for each in leaders]
        waiting = sum(len(queue) for queues in waits for queue in queues)
        if not self._scene.alone:
            return waiting == 0 and self._scene.network.peers(machine.name) <= nodes
        held = node.server.pool.in_use_bytes + node.server.pool.held
        return counters.connections == counters.queued_bytes == waiting == held == 0

    def _check_metadata(self) -> None:
        """Clients change nothing any more, so every node gets the same metadata, and leaders stay.

        A leader that was just elected does not know yet how far its log is committed. Nobody may conclude anything from
        what it says.
        """
        what = "the same metadata on every node, with leaders that stay"
        self._stepper.run_until(lambda: self._white_box.agree and self._leaders_stay, FINISH_LIMIT_MS, what)
        self._white_box.check_at_end(self._stepper.now_ms)
        for scribe in self._scribes:
            scribe.check_kept()
        if self._operator is not None:
            self._operator.check_kept()

    @property
    def _leaders_stay(self) -> bool:
        """Whether the controller will not return leaderships to the first replicas: they have them, or it waits."""
        node = self._machines[0].node
        assert node is not None
        if node.config.get_int("leader.imbalance.check.interval.seconds") * 1000 > FINISH_LIMIT_MS:
            return True
        return all(
            partition.leader == partition.preferred_leader
            for topic in node.image.topics_by_id.values()
            for partition in topic.partitions.values()
        )

    def _end_transactions(self) -> None:
        """Waits until every transaction has ended, even without its producer; checks that all or none is visible."""
        self._rests += 1
        task = Task(self._scene.clock, "rest", Rest(self._scene, f"rest-{self._rests}").run())
        self._stepper.tasks.append(task)
        self._stepper.run_until(lambda: task.ended, FINISH_LIMIT_MS, "the end of every transaction")

    def _audit_everything(self) -> None:
        self._stepper.run_until(lambda: not self._audits.running, FINISH_LIMIT_MS, "reading everything")
        self._audits.start(self._scene.nodes, after_power_loss=False, alone=True)
        self._stepper.run_until(lambda: not self._audits.running, FINISH_LIMIT_MS, "reading everything once more")

    def _check_equal_replicas(self) -> None:
        """Followers learn a little later how much is committed."""
        equal, end_ms = self._white_box.equal, self._stepper.now_ms + REPLICATION_LIMIT_MS
        while not equal.end_alike and self._stepper.now_ms < end_ms:
            self._stepper.run_for(POLL_MS)
        equal.check()
