"""The event loop: signals reach it as events, on both kinds."""

import asyncio
import os
import signal

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
    stops: list[str] = []

    def stop() -> None:
        stops.append("stopped")
        loop.stop()

    on_stop_signal(loop, stop)
    loop.call_soon(os.kill, os.getpid(), number)
    loop.run_forever()
    loop.close()
    assert stops == ["stopped"]
