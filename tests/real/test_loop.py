"""The event loop: signals arrive as events, on uvloop and on asyncio."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from quire.real.loop import new_event_loop, on_stop_signal


def test_uvloop_is_used_where_it_is_installed() -> None:
    loop = new_event_loop()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["uvloop", "asyncio"])
def test_a_signal_stops_the_loop(kind: str, number: signal.Signals) -> None:
    loop = new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
    stops: list[int] = []

    def stop(number: int) -> None:
        stops.append(number)
        loop.stop()

    on_stop_signal(loop, stop)
    loop.call_soon(os.kill, os.getpid(), number)
    loop.run_forever()
    loop.close()
    assert stops == [number]


STOPS_THEN_GETS_SIGNALS = """
import asyncio, os, signal, sys
from quire.real.loop import close_for_good, new_event_loop, on_stop_signal

def get_signals(kill=os.kill, pid=os.getpid(), numbers=(signal.SIGTERM, signal.SIGINT)):
    for number in numbers:
        kill(pid, number)

class GoneLate:
    def __del__(self, get_signals=get_signals):
        get_signals()  # after Python has given its signals up

gone_late = GoneLate()
loop = new_event_loop() if sys.argv[1] == "uvloop" else asyncio.new_event_loop()
on_stop_signal(loop, lambda number: loop.stop())
loop.call_soon(os.kill, os.getpid(), signal.SIGTERM)
loop.run_forever()
close_for_good(loop)
get_signals()
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
"""


@pytest.mark.parametrize("kind", ["uvloop", "asyncio"])
def test_signals_that_come_after_the_loop_was_closed_do_not_kill_the_process(kind: str) -> None:
    command = [sys.executable, "-c", STOPS_THEN_GETS_SIGNALS, kind]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")
