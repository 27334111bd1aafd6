"""A client that sends what no client should: random bytes, wrong lengths, requests with flipped bits.

It may lose its connection, but must not affect other clients: their checks show whether it does.
"""

from simulator.clients.batches import BatchMaker
from simulator.clients.client import Scene, SimClient
from simulator.clients.produce import request_for, version_for
from simulator.clients.wire import Wire


class Vandal(SimClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._maker = BatchMaker(scene, self.random)
        self._number = 0

    async def run(self) -> None:
        while not self.scene.finishing:
            wire = await self.connected()
            if self.random.chance(0.5):
                wire.send_raw(self._noise())
            else:
                self._send_damaged_batch(wire)
            await self.scene.sleep(self.random.between(0.0, 1000.0))
            wire.abort()
        self.close()

    def _noise(self) -> bytes:
        """A frame whose length field is right, too large, too small, enormous or negative."""
        content = self.random.random_bytes(self.random.below(200))
        length = self.random.choice((len(content), len(content) + 3, len(content) // 2, 1 << 30, -5, 0))
        return length.to_bytes(4, "big", signed=True) + content

    def _send_damaged_batch(self, wire: Wire) -> None:
        """Sends a valid request with acks=1, but with one flipped bit.

        If the batch is still valid, it may be appended; if the bit is in the topic or partition, to another partition.
        """
        partitions = self.scene.ledger.live_partitions()
        batch = self._maker.make(self.random.choice(partitions), self.name, self._number)
        for partition in partitions:
            for number, value in enumerate(batch.values, self._number):
                partition.send(value, self.name, number, idempotent=False)
        self._number += len(batch.values)
        version = version_for(self, [batch])
        frame = bytearray(wire.frame(request_for([batch], acks=1), version))
        at = 4 + self.random.below(len(frame) - 4)
        frame[at] ^= 1 << self.random.below(8)
        wire.send_raw(bytes(frame))
