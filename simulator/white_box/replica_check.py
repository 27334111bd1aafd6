"""The replicas of a partition, compared with each other and with what clients know to be committed.

- Every member of the ISR and ELR that did not lose power has everything that clients know to be committed, also while
  its node is down: it may lead as soon as it returns.
- A leader's high watermark is at most the log end of every ISR member.
- Members of the ISR have the same batches, byte for byte, below their high watermarks, unless the topic is compacted.
- At the end all replicas are in the ISR. Then they are equal (`simulator.white_box.equal_replicas`).
"""

from collections.abc import Mapping, Sequence

from quire.metadata.partition_image import PartitionImage
from quire.replication.partition import Partition
from simulator.checks.superseded import is_compacted
from simulator.ledger import Ledger, PartitionBook
from simulator.machine import Machine, MachineState
from simulator.violation import Violation
from simulator.white_box.committed_check import BatchSeen
from simulator.white_box.replica_hosts import Host, Key, hosts_of
from simulator.white_box.replica_log import Position, batches_from, seen

HAS_COMMITTED = "every replica in the ISR and ELR has what is committed"
WATERMARK = "a high watermark is at most the log end of every ISR member"
SAME_LOG = "replicas have the same batches below the high watermark"
COMPARED_EVERY_MS = 400.0


class ReplicaCheck:
    def __init__(self, machines: Sequence[Machine], ledger: Ledger) -> None:
        self._machines = machines
        self._ledger = ledger
        self._batch_at: dict[PartitionBook, dict[int, tuple[BatchSeen, str]]] = {}
        self._positions: dict[tuple[PartitionBook, Partition], Position] = {}
        self._settled: dict[PartitionBook, int] = {}
        self._next_ms = 0.0
        self.compared = 0

    def check(self, newest: Mapping[Key, PartitionImage], now_ms: float) -> None:
        hosts = hosts_of(self._machines)
        compares = now_ms >= self._next_ms
        if compares:
            self._next_ms = now_ms + COMPARED_EVERY_MS
        for book in self._ledger.live_partitions():
            key = book.topic.topic_id, book.index
            image = newest.get(key)
            if image is None or book.unsettled or book.topic.given_up:
                continue
            replicas = hosts.get(key, {})
            self._check_committed(book, image, replicas)
            _check_watermark(book, image, replicas)
            if compares and not is_compacted(book.topic):
                self._compare(book, image, replicas)

    def check_at_end(self, newest: Mapping[Key, PartitionImage]) -> None:
        """Changes have ended, and everything works: every log is compared from its start."""
        hosts = hosts_of(self._machines)
        for book in self._ledger.live_partitions():
            image = newest[book.topic.topic_id, book.index]
            replicas = hosts[book.topic.topic_id, book.index]
            if not is_compacted(book.topic):
                self._positions = {reader: at for reader, at in self._positions.items() if reader[0] is not book}
                self._compare(book, image, replicas)

    def is_fully_replicated(self, newest: Mapping[Key, PartitionImage]) -> bool:
        """Whether every partition has a leader and all its replicas in the ISR."""
        hosts = hosts_of(self._machines)
        return all(
            image.has_leader and len(image.isr) == len(image.replicas) == len(hosts.get(key, {}))
            for key, image in newest.items()
            if self._matters(key)
        )

    def missing(self, newest: Mapping[Key, PartitionImage]) -> list[str]:
        """Partitions that are not whole, for a person."""
        return [
            f"{self._ledger.topics.get(key[0], key[0].hex())}-{key[1]}: {image}"
            for key, image in newest.items()
            if self._matters(key) and not (image.has_leader and len(image.isr) == len(image.replicas))
        ]

    def _matters(self, key: Key) -> bool:
        topic = self._ledger.topics.get(key[0])
        return topic is not None and not topic.deletion_asked

    # --- Ends

    def _check_committed(self, book: PartitionBook, image: PartitionImage, replicas: Mapping[int, Host]) -> None:
        for number in dict.fromkeys((*image.isr, *image.elr)):
            end_offset = self._end_offset(book, number, replicas)
            if end_offset is None or end_offset >= book.end_offset:
                continue
            name = self._machines[number - 1].name
            if name not in book.replicas.hurt:
                raise Violation(
                    HAS_COMMITTED,
                    f"{book} of {name} ends at {end_offset}, but {book.end_offset} is committed, ISR {image.isr}, "
                    f"ELR {image.elr}",
                )

    def _end_offset(self, book: PartitionBook, number: int, replicas: Mapping[int, Host]) -> int | None:
        """Where the replica's log ends; None while its node starts or stops, or if it has none."""
        host = replicas.get(number)
        if host is not None:
            return host.partition.log.end_offset
        machine = self._machines[number - 1]
        if machine.state is not MachineState.DOWN:
            return None
        return machine.last_log_ends.get((book.topic.topic_id, book.index))

    # --- Batches

    def _compare(self, book: PartitionBook, image: PartitionImage, replicas: Mapping[int, Host]) -> None:
        """Compares what became committed since the last time, on every member that knows the present leader."""
        if self._settled.get(book) != book.leadership.settled:
            self._settled[book] = book.leadership.settled
            self._forget(book)
        known = self._batch_at.setdefault(book, {})
        for number, host in replicas.items():
            if number not in image.isr or host.partition.leader_epoch != image.leader_epoch:
                continue
            reader = book, host.partition  # A replica that was removed and added again has another log.
            folder, watermark = host.partition.log.path, host.partition.high_watermark
            for header, _, behind in batches_from(host.machine.disk, folder, self._positions.get(reader)):
                if header.last_offset >= watermark:
                    break
                self._positions[reader] = behind
                # What is before the start is never read again, and may be left over from an earlier leader.
                if header.last_offset >= host.partition.log.start_offset:
                    self.has(book, known, host.machine.name, seen(header))

    def has(self, book: PartitionBook, known: dict[int, tuple[BatchSeen, str]], node: str, batch: BatchSeen) -> None:
        self.compared += 1
        before, witness = known.setdefault(batch.base_offset, (batch, node))
        if before != batch:
            raise Violation(SAME_LOG, f"{book}: {witness} has {before}, and {node} has {batch}")

    def _forget(self, book: PartitionBook) -> None:
        """After a loss of records, the logs are compared from their starts again, with each other."""
        self._batch_at.pop(book, None)
        self._positions = {reader: at for reader, at in self._positions.items() if reader[0] is not book}


def _check_watermark(book: PartitionBook, image: PartitionImage, replicas: Mapping[int, Host]) -> None:
    """Only members that both the leader's metadata and the newest one have in the ISR."""
    leader = replicas.get(image.leader)
    if leader is None or leader.partition.leader is None or leader.machine.node is None:
        return
    own = leader.machine.node.image.partition(book.topic.topic_id, book.index)
    if own is None or own.leader_epoch != image.leader_epoch:
        return
    for number in own.isr:
        host = replicas.get(number)
        if number not in image.isr or host is None or host.machine.name in book.replicas.hurt:
            continue
        if host.partition.log.end_offset < leader.partition.high_watermark:
            raise Violation(
                WATERMARK,
                f"{book} of {leader.machine.name} has {leader.partition.high_watermark}, but "
                f"{host.machine.name} ends at {host.partition.log.end_offset}",
            )
