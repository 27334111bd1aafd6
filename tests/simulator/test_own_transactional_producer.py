"""Quire's own transactional producer in the simulation: when the ledger counts a transaction as ended."""

from contextlib import nullcontext
from typing import cast

import pytest

from quire.client.batch import Delivery, Identity, Receipt
from quire.client.errors import ClientError
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps
from simulator.clients.own_producer import Sent
from simulator.clients.own_transactional_producer import OwnTransactionalProducer
from simulator.ledger import TopicBook
from simulator.life import Life
from simulator.violation import Violation
from simulator.world import World


class AbortsAtOnce:
    identity = Identity(5, 0)

    def abort(self) -> Steps[None]:
        yield from ()


def abort_after_another_took_over(outcome: Exception | None) -> None:
    """One record was sent, with this outcome, by a producer that another one has replaced since."""
    world = World(0, cast=lambda _: [])
    producer = OwnTransactionalProducer(world.scene, "own", "id", 2, [], abandons=False)
    ids, ticks = world.scene.ledger.transactions.id_named("id"), world.scene.ledger.ticks
    session = ids.given("own", AbortsAtOnce.identity, ids.asking(ticks.next()))
    ids.given("another", Identity(5, 1), ids.asking(ticks.next()))
    producer._producer, producer._session = cast(Producer, AbortsAtOnce()), session
    producer._era = world.scene.era
    delivery = Delivery(TopicPartition("t", 0))
    delivery.done.complete(outcome)
    sent = Sent(TopicBook("t", bytes(16), 1, stays=True).partitions[0], b"value", Receipt(delivery, 0))
    transaction = world.scene.ledger.transactions.begin(session)
    with pytest.raises(StopIteration):
        producer._end(transaction, [sent], commit=False).send(None)


def test_a_producer_that_was_replaced_may_abort_what_it_has_not_sent() -> None:
    abort_after_another_took_over(ClientError("the transaction was aborted before the record was sent"))


def test_a_producer_that_was_replaced_may_not_end_what_it_has_sent() -> None:
    with pytest.raises(Violation, match="a producer that was replaced is refused"):
        abort_after_another_took_over(None)


@pytest.mark.parametrize(("protocol", "lives", "excused"), [(1, 1, True), (1, 0, False), (2, 1, False)])
def test_only_by_the_old_protocol_may_a_start_of_the_node_make_a_producer_a_stranger(
    protocol: int, lives: int, excused: bool
) -> None:
    world = World(0, cast=lambda _: [])
    scene = world.scene
    producer = OwnTransactionalProducer(scene, "own", "id", protocol, [], abandons=False)
    ids = scene.ledger.transactions.id_named("id")
    init = ids.asking(scene.ledger.ticks.next())
    init.settled_tick = scene.ledger.ticks.next()
    session = ids.given("own", Identity(5, 0), init)
    producer._era, producer._began_starts = scene.era, scene.starts
    scene.lives["node"] = Life("node", scene.starts + lives)
    with nullcontext() if excused else pytest.raises(Violation, match="errors have a cause"):
        producer._check_excuse(session, ApiError(ErrorCode.PRODUCER_FENCED))
