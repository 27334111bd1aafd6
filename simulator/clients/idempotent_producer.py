"""An idempotent producer: up to five batches of a partition in flight, all of which are retried after a loss.

Its records must be in the log once and in order, whatever faults happen. It needs another producer id only after a
power loss, because the node may have lost its last batches along with the records, or when it has found its way back to
a leader that was deposed and does not know it: clients that remember leader epochs do not go back.
"""

from collections import deque

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from simulator.clients.batches import Batch, BatchMaker
from simulator.clients.client import LEAVING, REQUEST_TIMEOUT_MS, TROUBLE, Scene, SimClient
from simulator.clients.produce import GONE, allowed_errors, base_offset_for, judge, request_for, version_for
from simulator.clients.wire import Lost, Wire
from simulator.ledger import PartitionBook
from simulator.violation import Violation

IN_FLIGHT_MOST = 5
ACKS_ALL = -1


class IdempotentProducer(SimClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._maker = BatchMaker(scene, self.random)
        self._producer_id = -1
        self._era = -1
        """The era in which the session began: a later power loss may have lost the node's state of it."""
        self._next_numbers: dict[PartitionBook, int] = {}
        self._introduced: dict[PartitionBook, None] = {}
        """Partitions that have a batch of this session."""

    async def run(self) -> None:
        while not self.scene.finishing:
            if self._producer_id < 0 or self.random.chance(0.02):
                await self._begin_session()
            book = self.random.choice(self.scene.ledger.live_partitions())
            batches = deque(self._make(book) for _ in range(1 + self.random.below(4 * IN_FLIGHT_MOST)))
            await self._write(batches)
            await self.scene.sleep(self.random.between(0.0, 300.0))
        self.close()

    async def _begin_session(self) -> None:
        while True:
            try:
                era = self.scene.era
                answer = await self.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
            except Lost:
                await self.back_off()
                continue
            # New ids are a metadata change, which must wait while the disk is full.
            no_ids = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,) if self.excuses else ()
            if self.expect(answer.error_code, "InitProducerId", *no_ids) is not ErrorCode.NONE:
                await self.back_off()
                continue
            self.scene.checker.producer_id(answer.producer_id, f"{self.name} at {self.scene.clock.monotonic_ms()}")
            self._producer_id = answer.producer_id
            self._era = era
            self._next_numbers.clear()
            self._introduced.clear()
            return

    def _make(self, book: PartitionBook) -> Batch:
        number = self._next_numbers.get(book, 0)
        session = f"{self.name}#{self._producer_id}"
        batch = self._maker.make(book, session, number, producer_id=self._producer_id, sequence=number)
        self._next_numbers[book] = number + len(batch.values)
        return batch

    async def _write(self, batches: deque[Batch]) -> None:
        """Writes batches to one partition in order, until all are acknowledged or one fails."""
        while batches:
            wire = await self.connected(batches[0].book)
            self._fill_pipeline(wire, batches)
            try:
                error = await self._outcome(batches[0])
            except Lost:
                self._pull_back(batches)
                await self.back_off()
                continue
            if error is ErrorCode.NONE:
                self._introduced[batches.popleft().book] = None
            elif error in GONE and batches[0].book.topic.deletion_asked:
                return
            elif error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                # The node lacks what was acknowledged before this batch, and may lack what comes after.
                self._producer_id = -1
                return
            else:
                await self._await_rest(batches)
                await self.back_off()

    def _fill_pipeline(self, wire: Wire, batches: deque[Batch]) -> None:
        # A node accepts any first batch of a producer that it does not know. If it refused the first and accepted a
        # later one, the order would be lost. So the first batch is sent alone, as careful clients do.
        most = IN_FLIGHT_MOST if batches[0].book in self._introduced else 1
        for batch in list(batches)[:most]:
            if not batch.answers:
                copies = 2 if self.misbehaves() else 1
                batch.sending(wire, copies)
                self.scene.ledger.counts.requests += copies
                request, version = request_for([batch], ACKS_ALL), version_for(self, [batch])
                batch.answers = wire.ask(request, version, REQUEST_TIMEOUT_MS, copies=copies)

    async def _outcome(self, batch: Batch) -> ErrorCode:
        """The result of the oldest batch: all its copies must get the same."""
        outcomes = [base_offset_for(self, batch, await self.answer(answer)) for answer in batch.answers]
        for error, base_offset in outcomes:
            judge(self, batch, error, base_offset, self._allowed(batch))
        return ErrorCode.NONE if any(error is ErrorCode.NONE for error, _ in outcomes) else outcomes[0][0]

    def _allowed(self, batch: Batch) -> tuple[ErrorCode, ...]:
        book = batch.book
        # A leader that was deposed before lacks what the next one has acknowledged.
        lacks = self._era < book.era or book.unsettled or batch.to_deposed
        return allowed_errors(self, book) + ((ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,) if lacks else ())

    async def _await_rest(self, batches: deque[Batch]) -> None:
        """The oldest batch was refused, so the later ones will be too: all are sent again, in order."""
        for batch in list(batches)[1:]:
            for answer in batch.answers:
                try:
                    error, _ = base_offset_for(self, batch, await self.answer(answer))
                except Lost:
                    break
                allowed = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, *TROUBLE, *LEAVING, *GONE, *self.lost_ways)
                if error is not ErrorCode.NONE and error not in allowed:
                    raise Violation("errors have a cause", f"{self.name} got {error.name} for {batch.book}")
        self._pull_back(batches)

    def _pull_back(self, batches: deque[Batch]) -> None:
        for batch in batches:
            batch.answers = []
