"""A consumer that is not a member of a group and only commits offsets to it; others may use the same group."""

from simulator.clients.client import Scene, SimClient
from simulator.clients.offsets import commit_offsets, fetch_offsets
from simulator.clients.wire import Lost


class Committer(SimClient):
    def __init__(self, scene: Scene, name: str, group: str) -> None:
        super().__init__(scene, name)
        self._group = group

    async def run(self) -> None:
        while not self.scene.finishing:
            try:
                await self._do_something()
            except Lost:
                await self.back_off()
            await self.scene.sleep(self.random.between(0.0, 200.0))
        self.close()

    async def _do_something(self) -> None:
        group = self.scene.group_name(self._group)
        books = self.scene.ledger.live_partitions(that_stay=True)
        chosen = {self.random.below(len(books)) for _ in range(1 + self.random.below(3))}
        if self.random.chance(0.4):
            offsets = {books[slot]: self.random.below(1000) for slot in sorted(chosen)}
            await commit_offsets(self, group, offsets)
        else:
            asked = [books[slot] for slot in sorted(chosen)]
            await fetch_offsets(self, group, asked, stable=self.random.chance(0.5))
