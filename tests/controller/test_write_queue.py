"""Answers in the order of the log."""

from quire.controller.write_queue import WriteQueue


def test_an_answer_waits_for_everything_before_it() -> None:
    queue = WriteQueue()
    first = queue.answer("first", 5, lambda: "refused")
    second = queue.answer("second", 7, lambda: "refused")
    queue.committed(4)
    assert not first.done
    queue.committed(5)
    assert first.value == "first" and not second.done
    queue.committed(9)
    assert second.value == "second"


def test_a_wait_for_a_committed_record_ends_at_once() -> None:
    queue = WriteQueue()
    queue.committed(5)
    assert queue.answer("now", 5, lambda: "refused").done


def test_waiting_requests_are_refused_when_leadership_is_lost() -> None:
    queue = WriteQueue()
    waiting = [queue.answer("yes", offset, lambda: "refused") for offset in (5, 6)]
    queue.refuse_all()
    assert [each.value for each in waiting] == ["refused", "refused"]
    queue.committed(9)
    assert len(queue) == 0


def test_an_answer_may_lead_to_the_next_request() -> None:
    queue = WriteQueue()
    answered: list[str] = []

    def again(answer: str) -> None:
        answered.append(answer)
        if len(answered) < 3:
            queue.answer(f"{answer}!", 5, lambda: "refused").when_done(again)

    queue.answer("hello", 5, lambda: "refused").when_done(again)
    queue.committed(5)
    assert answered == ["hello", "hello!", "hello!!"]
