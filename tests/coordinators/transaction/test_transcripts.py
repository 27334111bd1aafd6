"""The transcripts in `transcripts/`, replayed and compared word for word.

Each block of a file is a command, a line of dashes and what happened. A producer id and its epoch are written `1000:0`.
Lines that begin with `log:` are records of `__transaction_state`, `->` is a request with markers, a partition's line is
what it did with one, a producer's line is its answer. `tests.transcripts` says how to write them again.
"""

from pathlib import Path

import pytest

from quire.protocol.errors import ApiError
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.list_transactions import ListTransactionsRequest
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer
from tests.coordinators.transaction.sim_partitions import Name, shown
from tests.transcripts import check, stories


class Play:
    """One transcript: a cluster and the producers that it names."""

    def __init__(self, transaction_version: int = 2) -> None:
        self.cluster = SimCluster(transaction_version)
        self.story = self.cluster.story
        self.producers: dict[str, SimProducer] = {}

    def command(self, name: str, words: list[str]) -> None:
        match name, words:
            case "producer", [producer, transactional_id, *protocol]:
                self.producers[producer] = SimProducer(
                    self.cluster, producer, transactional_id, int(protocol[0]) if protocol else 2
                )
            case (("init" | "go-on"), [producer, *version]):
                api_version = int(version[0]) if version else 6
                self.producers[producer].init(goes_on=name == "go-on", api_version=api_version)
            case "add", [producer, *names]:
                self.producers[producer].add(*map(partition, names))
            case "offsets", [producer]:
                self.producers[producer].add_offsets()
            case "produce", [producer, *names]:
                for each in names:
                    self.producers[producer].produce(partition(each))
            case (("commit" | "abort"), [producer]):
                self.producers[producer].end(commit=name == "commit")
            case "forge", [producer, ("commit" | "abort") as what, identity]:
                self.forge(self.producers[producer], what, identity)
            case "end-again", [producer]:
                request = self.producers[producer].last_end
                assert request is not None
                self.producers[producer].send_end(request)
            case "forget", [producer]:
                """The response was lost: the producer continues with the id and epoch of its last EndTxn."""
                request = self.producers[producer].last_end
                assert request is not None
                self.producers[producer].producer_id = request.producer_id
                self.producers[producer].epoch = request.producer_epoch
            case _:
                self.happens(name, words)

    def forge(self, producer: SimProducer, what: str, identity: str) -> None:
        producer_id, epoch = map(int, identity.split(":"))
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=what == "commit",
        )
        was = producer.producer_id, producer.epoch
        producer.send_end(request)
        producer.producer_id, producer.epoch = was

    def happens(self, name: str, words: list[str]) -> None:
        cluster, channel = self.cluster, self.cluster.channel
        match name, words:
            case "given", [transactional_id, identity]:
                producer_id, epoch = map(int, identity.split(":"))
                cluster.given(transactional_id, producer_id, epoch)
            case "wait", [duration_ms]:
                cluster.clock.run_for(int(duration_ms))
            case "crash", []:
                cluster.crash()
            case "hold", ["log"]:
                cluster.shard.holding = True
            case "commit-log", []:
                cluster.shard.holding = False
                cluster.shard.commit()
            case "lose-log", []:
                cluster.shard.fail()
                cluster.shard.holding = False
            case "hold", ["markers"]:
                channel.holding = True
            case "deliver", []:
                channel.holding = False
                while channel.requests:
                    channel.deliver()
            case "lose-requests", []:
                while channel.requests:
                    channel.lose()
                channel.holding = False
            case "lose-answers", []:
                channel.loses_answers = True
            case "keep-answers", []:
                channel.loses_answers = False
            case "down", [node]:
                channel.down.add(int(node))
            case "up", [node]:
                channel.down.discard(int(node))
            case "elect", [each, leader]:
                cluster.elect(partition(each), -1 if leader == "nobody" else int(leader))
            case "delete", [topic]:
                cluster.delete_topic(topic)
            case "no-producer-ids", []:
                cluster.has_producer_ids = False
            case "producer-ids", []:
                cluster.has_producer_ids = True
            case "status", []:
                self.status()
            case _:
                raise AssertionError(f"no such command: {name} {' '.join(words)}")

    def status(self) -> None:
        listed = self.cluster.run(
            lambda machine, now_ms: machine.list_transactions(ListTransactionsRequest(), now_ms)
        ).value
        assert not isinstance(listed, ApiError)
        for each in listed.transaction_states:
            self.describe(each.transactional_id)
        for name, holder in self.cluster.partitions.items():
            if holder.entries:
                held = [f"{entry.what}({entry.producer_id}:{entry.producer_epoch})" for entry in holder.entries]
                self.cluster.tell(f"{shown(name)} has {' '.join(held)}")

    def describe(self, transactional_id: str) -> None:
        described = self.cluster.run(lambda machine, now_ms: machine.describe(transactional_id)).value
        assert not isinstance(described, ApiError)
        words = [
            f"{transactional_id} is {described.transaction_state}",
            f"{described.producer_id}:{described.producer_epoch}",
            *(shown((topic.topic, index)) for topic in described.topics for index in topic.partitions),
        ]
        self.cluster.tell(" ".join(words))


def partition(text: str) -> Name:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def begin(words: list[str]) -> Play:
    assert words[0] == "cluster", "a story begins with: cluster [<transaction.version>]"
    return Play(*map(int, words[1:]))


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_the_coordinator_follows_the_transcript(path: Path) -> None:
    check(path, begin)
