"""When nothing is wrong any more and no client writes, all replicas of a partition must be equal, in every topic.

All are in the ISR and end at the same offset, and everything is committed. From the latest log start on they have the
same batches, byte for byte. Replicas of a compacted topic are compacted at different times, so these must have the same
last value of each key, at the same offset. Topics of coordinators are compared like all others.

If a partition may have lost committed records, a replica may lack the last value of a key: it was compacted while there
was a later one, which is lost. This follows from the loss, so it is allowed wherever that is.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import PartitionImage
from quire.protocol.records import BatchHeader, ControlRecordType, control_type, decode_batch
from simulator.machine import Machine
from simulator.violation import Violation
from simulator.white_box.replica_hosts import Host, Key, hosts_of
from simulator.white_box.replica_log import batches_from

SAME_END = "once nothing is wrong, all replicas are in the ISR and end at the same offset, with everything committed"
SAME_BATCHES = "once nothing is wrong, all replicas of a partition have the same batches"
SAME_VALUES = "compacted replicas have the same last value of each key"
LONGEST_LIST = 5

Last = dict[bytes, tuple[int, bytes | None]]
"""Per key, the offset of its last record, and its value."""


class EqualReplicas:
    def __init__(self, machines: Sequence[Machine], ever_lost: Collection[Key] = ()) -> None:
        """`ever_lost` are the partitions that may have lost records at some time."""
        self._machines = machines
        self._ever_lost = ever_lost
        self.compared = 0
        """How many replicas were compared with another one."""

    @property
    def end_alike(self) -> bool:
        """Whether the replicas of each partition are in the ISR and end at the same offset, everything committed."""
        return all(_end_alike(hosts, image) for _, hosts, image in self._partitions())

    def check(self) -> None:
        differing = [each for each in self._partitions() if not _end_alike(each[1], each[2])]
        if differing:
            raise Violation(SAME_END, "; ".join(_ends(*each) for each in differing[:LONGEST_LIST]))
        for what, hosts, _ in self._partitions():
            first = hosts[0].partition
            start = max(host.partition.log.start_offset for host in hosts)
            if any(host.partition.log.config.compact for host in hosts):
                self._compare_values(what, hosts, start, (first.topic_id, first.index) in self._ever_lost)
            else:
                self._compare_batches(what, hosts, start)

    def _partitions(self) -> Iterator[tuple[str, list[Host], PartitionImage]]:
        """Every partition, with a description, its replicas and what the metadata says."""
        hosts = hosts_of(self._machines)
        for topic in self._image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                here = hosts.get((topic.topic_id, index), {})
                found = [here[replica] for replica in partition.replicas if replica in here]
                yield f"{topic.name}-{index}", found, partition

    @property
    def _image(self) -> ClusterImage:
        """All nodes have the same."""
        node = self._machines[0].node
        assert node is not None
        return node.image

    def _compare_batches(self, what: str, hosts: Sequence[Host], start: int) -> None:
        first = list(_batches(hosts[0], start))
        for host in hosts[1:]:
            self.compared += 1
            for one, other in zip_longest(first, _batches(host, start)):
                if one is None or other is None or one[1] != other[1]:
                    told = f"{hosts[0].machine.name} has {_told(one)}, and {host.machine.name} has {_told(other)}"
                    raise Violation(SAME_BATCHES, f"{what}: {told}")

    def _compare_values(self, what: str, hosts: Sequence[Host], start: int, were_lost: bool) -> None:
        first = _last_values(hosts[0], start)
        for host in hosts[1:]:
            self.compared += 1
            last = _last_values(host, start)
            differing = {key: (first.get(key), last.get(key)) for key in {*first, *last}}
            differing = {key: pair for key, pair in differing.items() if not _agree(*pair, may_lack=were_lost)}
            if differing:
                told = f"{hosts[0].machine.name} and {host.machine.name} differ in {differing}"
                raise Violation(SAME_VALUES, f"{what}: {told}")


def _end_alike(hosts: Sequence[Host], image: PartitionImage) -> bool:
    ends = {end for host in hosts for end in (host.partition.log.end_offset, host.partition.high_watermark)}
    return len(hosts) == len(image.replicas) == len(image.isr) and image.has_leader and len(ends) == 1


def _ends(what: str, hosts: Sequence[Host], image: PartitionImage) -> str:
    ends = [f"{each.machine.name} {each.partition.high_watermark}/{each.partition.log.end_offset}" for each in hosts]
    return f"{what}: high watermarks and ends {', '.join(ends)}; {image}"


def _batches(host: Host, start: int) -> Iterator[tuple[BatchHeader, bytes]]:
    for header, content, _ in batches_from(host.machine.disk, host.partition.log.path, None):
        if header.last_offset >= start:
            yield header, bytes(content[header.position : header.end])


def _told(batch: tuple[BatchHeader, bytes] | None) -> str:
    if batch is None:
        return "nothing more"
    header, content = batch
    return (
        f"{header.base_offset} to {header.last_offset} of epoch {header.leader_epoch}, producer {header.producer_id} "
        f"epoch {header.producer_epoch} sequence {header.base_sequence}, {len(content)} bytes, CRC {header.crc:08x}"
    )


def _last_values(host: Host, start: int) -> Last:
    """Of all records that were not aborted: compaction removes those that were."""
    last: Last = {}
    pending: dict[int, Last] = {}
    for header, content, _ in batches_from(host.machine.disk, host.partition.log.path, None):
        if header.last_offset < start or not header.record_count:
            continue
        records = decode_batch(content, header)
        if header.is_control:
            ended = pending.pop(header.producer_id, {})
            if control_type(records[0]) is ControlRecordType.COMMIT:
                _add(last, ended)
            continue
        values: Last = {
            bytes(record.key): (record.offset, None if record.value is None else bytes(record.value))
            for record in records
            if record.key is not None and record.offset >= start
        }
        _add(pending.setdefault(header.producer_id, {}) if header.is_transactional else last, values)
    return last


def _add(last: Last, values: Last) -> None:
    for key, value in values.items():
        if key not in last or last[key][0] < value[0]:
            last[key] = value


def _agree(one: tuple[int, bytes | None] | None, other: tuple[int, bytes | None] | None, *, may_lack: bool) -> bool:
    """A record without a value deletes its key, and may itself be removed later."""
    if one is None or other is None:
        present = one or other
        return present is None or present[1] is None or may_lack
    return one == other
