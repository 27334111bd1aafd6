"""Waits, after the last fault, until everything that was begun has come to its end; and then looks at how it ended.

No transaction may stay open or half ended, whatever became of its producer; with that every log is stable up to its
end. Then all that readers of committed records are shown, and all offsets that groups have committed, must fit what
producers were told.
"""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.list_transactions import ListTransactionsRequest
from quire.protocol.records import Record
from simulator.clients.client import SimClient
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.offsets import fetch_offsets
from simulator.clients.reading import READ_COMMITTED, Read, read
from simulator.clients.wire import Lost
from simulator.ledger import PartitionBook

AT_REST = ("Empty", "CompleteCommit", "CompleteAbort")
POLL_MS = 200.0


class Rest(SimClient):
    def misbehaves(self) -> bool:
        return False

    async def run(self) -> None:
        while True:
            try:
                await self._transactions_end()
                if not self.scene.ledger.transactions.may_hang:
                    await self._look_at_logs()
                self.scene.offsets.at_rest = not self.scene.ledger.transactions.may_hang
                await self._look_at_offsets()
                break
            except Lost:
                await self.back_off()
        self.close()

    async def _transactions_end(self) -> None:
        while True:
            answer = await self.ask(ListTransactionsRequest())
            error = self.expect(answer.error_code, "ListTransactions", *NOT_NOW)
            if error is ErrorCode.NONE and all(each.transaction_state in AT_REST for each in answer.transaction_states):
                return
            await self.scene.sleep(POLL_MS)

    async def _look_at_logs(self) -> None:
        shown: dict[PartitionBook, list[Record]] = {}
        for book in self.scene.ledger.live_partitions():
            if book.topic.transactional:
                shown[book] = await self._read(book)
        self.scene.checker.transactions.settled(shown)

    async def _read(self, book: PartitionBook) -> list[Record]:
        """All that a reader of committed records is shown, up to the end: it has to be stable up to there."""
        records: list[Record] = []
        offset = 0
        while True:
            found = await read(self, book, offset, isolation_level=READ_COMMITTED)
            assert isinstance(found, Read), f"nothing is wrong with {book} any more"
            records += found.records
            offset = found.next_offset
            if offset >= found.high_watermark:
                return records
            if offset >= found.stable_offset:
                await self.scene.sleep(POLL_MS)

    async def _look_at_offsets(self) -> None:
        groups: dict[str, list[PartitionBook]] = {}
        for each in self.scene.offsets.books():
            groups.setdefault(each.group, []).append(each.book)
        for group, books in groups.items():
            # An offset may stay pending for ever where the end of its transaction was lost with the power.
            stable = not self.scene.ledger.transactions.may_hang
            while await fetch_offsets(self, group, books, stable=stable) is None:
                await self.scene.sleep(POLL_MS)
