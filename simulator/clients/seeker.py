"""Looks up offsets (ends, starts, timestamps), and sometimes deletes the records before one."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from simulator.clients.client import SimClient
from simulator.clients.list_offsets import EARLIEST, LATEST, list_offset
from simulator.clients.wire import Lost
from simulator.ledger import PartitionBook

DELETE_CHANCE = 0.2


class Seeker(SimClient):
    async def run(self) -> None:
        while not self.scene.finishing:
            book = self.random.choice(self.scene.ledger.live_partitions(that_stay=True))
            takes_records = self.random.chance(DELETE_CHANCE) and not book.topic.transactional
            try:
                if takes_records:
                    await self._delete_records(book)
                else:
                    await list_offset(self, book, self._timestamp(book))
            except Lost:
                await self.back_off()
            await self.scene.sleep(self.random.between(50.0, 500.0))
        self.close()

    def _timestamp(self, book: PartitionBook) -> int:
        if book.known and self.random.chance(0.5):
            known = self.random.choice(list(book.known.values()))
            return known.timestamp if known.timestamp is not None else self.scene.clock.now_ms()
        return self.random.choice((LATEST, EARLIEST))

    async def _delete_records(self, book: PartitionBook) -> None:
        """Only up to an offset that is known to exist, so a refusal would be wrong."""
        wire = await self.connected(book)
        floor, era = book.floor(wire.node), wire.era
        if floor.end_offset <= floor.start_offset:
            return
        offset = floor.start_offset + self.random.below(floor.end_offset - floor.start_offset + 1)
        book.deletion_asked = max(book.deletion_asked, offset)
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=book.topic.name,
                    partitions=[DeleteRecordsPartition(partition_index=book.index, offset=offset)],
                )
            ],
            timeout_ms=3000,
        )
        answer = await self.ask_on(wire, request)
        found = answer.topics[0].partitions[0]
        cut = (ErrorCode.OFFSET_OUT_OF_RANGE,) if self.scene.checker.bounds.may_end_before(book, era, floor) else ()
        slow = () if self.scene.calm else (ErrorCode.REQUEST_TIMED_OUT,)
        error = self.expect(found.error_code, f"DeleteRecords of {book} before {offset}", *self.excuses, *cut, *slow)
        if error is ErrorCode.NONE:
            self.scene.tell(f"{self.name} deleted {book} before {offset}")
            self.scene.checker.bounds.deleted_records(book, era, floor, found.low_watermark)
