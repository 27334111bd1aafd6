"""Waits, after the last fault, until every transaction has ended, and then checks how.

No transaction may stay open or end in only some partitions, even if its producer is gone; so every log becomes stable
up to its end. Then the records that read_committed readers see, and the offsets that groups have committed, must agree
with what producers know.
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
        for node in self.scene.nodes:
            while not await self._are_at_rest(node):
                await self.scene.sleep(POLL_MS)

    async def _are_at_rest(self, node: str) -> bool:
        answer = await self.ask(ListTransactionsRequest(), node)
        error = self.expect(answer.error_code, "ListTransactions", *NOT_NOW)
        return error is ErrorCode.NONE and all(each.transaction_state in AT_REST for each in answer.transaction_states)

    async def _look_at_logs(self) -> None:
        shown: dict[PartitionBook, list[Record]] = {}
        for book in self.scene.ledger.live_partitions():
            if book.topic.transactional:
                shown[book] = await self._read(book)
        self.scene.checker.transactions.settled(shown)

    async def _read(self, book: PartitionBook) -> list[Record]:
        """All records that a read_committed reader sees, up to the end: the log must be stable up to there."""
        records: list[Record] = []
        offset = 0
        while True:
            found = await read(self, book, offset, isolation_level=READ_COMMITTED)
            if not isinstance(found, Read):
                assert found in self.lost_ways, f"nothing is wrong with {book} now"
                await self.back_off()
                continue
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
            # An offset may stay pending forever if a power loss has lost the end of its transaction.
            stable = not self.scene.ledger.transactions.may_hang
            while await fetch_offsets(self, group, books, stable=stable) is None:
                await self.scene.sleep(POLL_MS)
