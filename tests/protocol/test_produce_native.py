"""Reading the usual Produce request: compiled and interpreted code agree, for valid and invalid bytes."""

import random
from types import ModuleType

import pytest

from quire.protocol import codec, produce_native
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.protocol.records.native_modules import interpreted

INTERPRETED = interpreted("produce_native.py")


def request_bytes(version: int, size: int = 200) -> bytes:
    topic = TopicProduceData(name="topic") if version < 13 else TopicProduceData(topic_id=bytes(range(16)))
    topic.partition_data.append(PartitionProduceData(index=-7, records=b"r" * size))
    return codec.encode(ProduceRequest(acks=-1, timeout_ms=-1000, topic_data=[topic]), version)


@pytest.mark.parametrize("module", [produce_native, INTERPRETED], ids=["installed", "interpreted"])
@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 2_097_151])
def test_numbers_are_read_with_their_signs_and_records_of_any_size(module: ModuleType, version: int, size: int) -> None:
    data = request_bytes(version, size)
    request, end = module.read_usual(memoryview(b"before" + data + b"behind"), 6, version < 13)
    partition = request.topic_data[0].partition_data[0]
    assert (request.acks, request.timeout_ms, partition.index, end) == (-1, -1000, -7, 6 + len(data))
    assert partition.records == b"r" * size


@pytest.mark.parametrize("version", [9, 13])
def test_interpreted_and_installed_agree_on_any_bytes(version: int) -> None:
    data = request_bytes(version)
    chance = random.Random(version)
    for _ in range(3000):
        changed = bytearray(data[: chance.choice((len(data), chance.randrange(len(data) + 1)))])
        for _ in range(chance.randrange(4)):
            if changed:
                changed[chance.randrange(min(40, len(changed)))] = chance.choice((0, 1, 2, 127, 128, 255))
        view = memoryview(changed)
        assert produce_native.read_usual(view, 0, version < 13) == INTERPRETED.read_usual(view, 0, version < 13)
