"""Reads everything on some nodes: metadata, settings, and every log from its start to its end.

After a power loss of a node it is the first client to connect to it, and no client writes there until it is done; so it
sees exactly what the power loss left. At rest no client writes either. In both cases it reads to the end of each log,
which perhaps no client has seen: nobody has to read what a leader acknowledged alone. Otherwise other clients write
meanwhile, and it reads up to the ends that clients had seen when it began.
"""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quire.protocol.records import Record
from simulator.checks.fetch_checker import CheckedFetch
from simulator.clients.client import Scene, SimClient
from simulator.clients.describe import describe_settings, describe_topics
from simulator.clients.list_offsets import EARLIEST, list_offset
from simulator.clients.produce import GONE
from simulator.clients.wire import Lost, Wire
from simulator.ledger import Floor, PartitionBook

FIRST_VERSION_WITH_TOPIC_IDS = 13


class Auditor(SimClient):
    passes_the_gate = False

    def __init__(
        self, scene: Scene, name: str, nodes: Sequence[str], *, after_power_loss: bool, alone: bool = False
    ) -> None:
        """`alone`: no client writes meanwhile, as after a power loss."""
        super().__init__(scene, name)
        self._nodes = nodes
        self._after_power_loss = after_power_loss
        self._alone = alone or after_power_loss
        self.finished = False

    def misbehaves(self) -> bool:
        return False

    async def run(self) -> None:
        while not self.finished:
            try:
                await self._audit()
                self.finished = True
            except Lost:
                await self.back_off()
        self.close()

    async def _audit(self) -> None:
        ledger = self.scene.ledger
        await describe_topics(self)
        for topic in ledger.live_topics():
            await describe_settings(self, topic)
        lost = 0
        for book in [book for book in ledger.live_partitions() if self.scene.leader_of(book) in self._nodes]:
            start_offset, end_offset = await self._read(book)
            if self._after_power_loss:
                lost += self.scene.checker.losses.found_after_power_loss(book, start_offset, end_offset)
        if self._after_power_loss:
            ledger.give_up_deleted()
        self.scene.tell(f"{self.name} read everything" + (f": {lost} records are lost" if lost else ""))

    async def _read(self, book: PartitionBook) -> tuple[int, int]:
        """Reads the whole log; returns its start and end."""
        while True:
            wire = await self.connected(book)
            floor = book.floor(wire.node, afresh=self._after_power_loss)
            start_offset = offset = await self._start(book)
            records: list[Record] = []
            end_offset = -1
            while end_offset < 0 or offset < max(floor.end_offset, end_offset if self._alone else 0):
                found = await self._fetch(book, wire, floor, offset)
                if found is None:
                    break
                end_offset, fetched = found
                records += fetched.records
                offset = fetched.next_offset
            else:
                self.scene.checker.whole_logs.check(book, records)
                if self._alone:
                    self.scene.checker.whole_logs.check_compacted(book, records, offset)
                return start_offset, offset
            if book.topic.deletion_asked:
                return 0, book.flushed
            await self.back_off()

    async def _start(self, book: PartitionBook) -> int:
        if not book.topic.stays:
            return 0
        return (await list_offset(self, book, EARLIEST, afresh=self._after_power_loss)).offset

    async def _fetch(
        self, book: PartitionBook, wire: Wire, floor: Floor, offset: int
    ) -> tuple[int, CheckedFetch] | None:
        """The high watermark and what was read; None if reading must start again, or the topic is being deleted."""
        topic = FetchTopic(topic=book.topic.name, topic_id=book.topic.topic_id)
        topic.partitions = [FetchPartition(partition=book.index, fetch_offset=offset, partition_max_bytes=1 << 20)]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])
        era = wire.era
        answer = await self.ask_on(wire, request, at_least=0 if book.topic.stays else FIRST_VERSION_WITH_TOPIC_IDS)
        found = answer.responses[0].partitions[0]
        gone = GONE if book.topic.deletion_asked else ()
        cut = (ErrorCode.OFFSET_OUT_OF_RANGE,) if self.scene.checker.bounds.may_be_deleted(book, offset) else ()
        error = self.expect(found.error_code, f"reading {book}", *self.excuses, *gone, *cut)
        if error is not ErrorCode.NONE:
            return None
        fetched = self.scene.checker.fetches.check(book, era, floor, offset, found)
        if fetched is None:
            # A follower may answer too, and would again; what it has need not be settled.
            self.routes.forget()
            return None
        return found.high_watermark, fetched
