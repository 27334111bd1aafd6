"""Requests to stop: the first, a repetition, and a different second one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quire.console.stopping import Request, Stop, StopRequests, Terminated, term_ends_like_ctrl_c


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def clock_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr("quire.console.stopping.time.monotonic", lambda: now_s[0])
    return now_s


def test_two_sigterms_at_once_are_one_request_and_a_later_one_is_a_second(clock_s: list[float]) -> None:
    requests = StopRequests()
    assert requests.arrived(signal.SIGTERM) is Request.FIRST
    clock_s[0] += 0.9
    assert requests.arrived(signal.SIGTERM) is Request.SAME
    clock_s[0] += 0.2
    assert requests.arrived(signal.SIGTERM) is Request.SECOND


def test_ctrl_c_pressed_twice_is_a_second_request_however_fast(clock_s: list[float]) -> None:
    requests = StopRequests()
    assert requests.arrived(signal.SIGINT) is Request.FIRST
    assert requests.arrived(signal.SIGINT) is Request.SECOND


def test_a_stop_is_asked_for_once_and_the_second_request_ends_at_once(clock_s: list[float]) -> None:
    calls: list[str] = []
    stop = Stop(then=lambda: calls.append("then"))
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.asked and calls == ["then"]
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_sigterm_is_raised_where_the_command_is_and_not_again_while_it_cleans_up() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.raises(Terminated), term_ends_like_ctrl_c():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sigterm_that_the_parent_ignores_stays_ignored() -> None:
    program = (
        "import os, signal\n"
        "from quire.console.stopping import term_ends_like_ctrl_c\n"
        "with term_ends_like_ctrl_c():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    command = f"trap '' TERM; exec {sys.executable} -c \"$0\""
    assert subprocess.run(["sh", "-c", command, program], timeout=60).returncode == 0
