"""Requests of this node to its machine wait for the machine's answer."""

from quire.raft.pending_answers import PendingAnswers


def test_each_request_gets_its_own_answer() -> None:
    requests: PendingAnswers[str] = PendingAnswers()
    first, first_answer = requests.add()
    second, second_answer = requests.add()
    requests.answer(second, "twice")
    assert not first_answer.done
    assert second_answer.value == "twice"
    requests.answer(first, "done")
    assert first_answer.value == "done"


def test_every_request_that_waits_at_the_end_gets_one_response() -> None:
    requests: PendingAnswers[str] = PendingAnswers()
    first, first_answer = requests.add()
    _, second_answer = requests.add()
    requests.answer(first, "done")
    requests.answer_all("stopping")
    assert (first_answer.value, second_answer.value) == ("done", "stopping")
