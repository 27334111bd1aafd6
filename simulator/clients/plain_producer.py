"""A producer without idempotence: it retries when there is no answer, so records may be in the log twice.

With acks=0 it gets no answers, and nothing is promised.
"""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import ProduceResponse
from simulator.clients.batches import Batch, BatchMaker
from simulator.clients.client import REQUEST_TIMEOUT_MS, Scene, SimClient
from simulator.clients.produce import allowed_errors, base_offset_for, judge, request_for, version_for
from simulator.clients.wire import Lost

ACKS_NONE = 0
MOST_PARTITIONS = 3


class PlainProducer(SimClient):
    def __init__(self, scene: Scene, name: str, acks: int) -> None:
        super().__init__(scene, name)
        self._acks = acks
        self._maker = BatchMaker(scene, self.random)
        self._number = 0

    async def run(self) -> None:
        while not self.scene.finishing:
            batches = self._make_batches()
            while batches and not (self._acks == ACKS_NONE and self.scene.finishing):
                batches = [again for part in await self._parts(batches) for again in await self._try(part)]
            await self.scene.sleep(self.random.between(0.0, 60.0))
        self.close()

    def _make_batches(self) -> list[Batch]:
        partitions = self.scene.ledger.live_partitions()
        chosen = {self.random.below(len(partitions)) for _ in range(1 + self.random.below(MOST_PARTITIONS))}
        batches = []
        for slot in sorted(chosen):
            batch = self._maker.make(partitions[slot], self.name, self._number)
            batch.acks = self._acks
            self._number += len(batch.values)
            batches.append(batch)
        return batches

    async def _parts(self, batches: list[Batch]) -> list[list[Batch]]:
        """By the leaders of their partitions."""
        leaders = await self.by_leader([batch.book for batch in batches])
        return [[batch for batch in batches if batch.book in books] for books in leaders.values()]

    async def _try(self, batches: list[Batch]) -> list[Batch]:
        """Sends the batches to one node; returns those that have to be sent again."""
        wire = await self.connected(batches[0].book)
        request, version = request_for(batches, self._acks), version_for(self, batches)
        copies = 2 if self.misbehaves() else 1
        for batch in batches:
            batch.sending(wire, copies)
        self.scene.ledger.counts.requests += copies
        if self._acks == ACKS_NONE:
            for _ in range(copies):
                wire.tell(request, version)
            return []
        if self.misbehaves():
            wire.nap(self.random.between(1.0, 400.0))
        answers = wire.ask(request, version, REQUEST_TIMEOUT_MS, copies=copies)
        try:
            again = [batch for answer in answers for batch in self._judge(batches, await self.answer(answer))]
        except Lost:
            await self.back_off()
            return batches
        if again:
            await self.back_off()
        # The copy of a request may succeed where the first failed; asking once more is what a producer would do.
        return [batch for batch in batches if batch in again]

    def _judge(self, batches: list[Batch], answer: ProduceResponse) -> list[Batch]:
        again = []
        for batch in batches:
            error, base_offset = base_offset_for(self, batch, answer)
            judge(self, batch, error, base_offset, allowed_errors(self, batch.book))
            if error is not ErrorCode.NONE and not batch.book.topic.deletion_asked:
                again.append(batch)
        return again
