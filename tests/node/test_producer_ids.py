"""Producer ids from the controller's blocks: each once, with one request for a block at a time."""

from quire.node.producer_ids import NO_ID, ProducerIds
from quire.pending import Pending


class Controller:
    def __init__(self, size: int) -> None:
        self.size = size
        self.asked: list[Pending[tuple[int, int]]] = []

    def allocate(self) -> Pending[tuple[int, int]]:
        self.asked.append(Pending())
        return self.asked[-1]

    def answer(self) -> None:
        number = len(self.asked) - 1
        self.asked[-1].complete((number * self.size, self.size))


def test_ids_of_a_block_are_handed_out_in_order_and_then_a_new_block_is_asked_for() -> None:
    controller = Controller(2)
    ids = ProducerIds(controller.allocate)
    waiting = [ids.next_id() for _ in range(3)]
    assert len(controller.asked) == 1
    controller.answer()
    assert [pending.done for pending in waiting] == [True, True, False]
    assert len(controller.asked) == 2
    controller.answer()
    assert [pending.value for pending in waiting] == [0, 1, 2]
    assert ids.next_id().value == 3
    assert len(controller.asked) == 2


def test_without_a_block_of_ids_every_request_gets_a_retriable_error() -> None:
    controller = Controller(0)
    ids = ProducerIds(controller.allocate)
    waiting = [ids.next_id(), ids.next_id()]
    controller.answer()
    assert [pending.value for pending in waiting] == [NO_ID, NO_ID]
    ids.next_id()
    assert len(controller.asked) == 2


def test_a_client_that_asks_again_when_it_gets_an_id_gets_one_that_no_other_has() -> None:
    controller = Controller(3)
    ids = ProducerIds(controller.allocate)
    waiting = [ids.next_id() for _ in range(3)]
    again: list[Pending[int]] = []
    waiting[0].when_done(lambda _: again.append(ids.next_id()))
    controller.answer()
    assert len(controller.asked) == 2
    controller.answer()
    assert [pending.value for pending in (*waiting, *again)] == [0, 1, 2, 3]
    assert ids.next_id().value == 4
