"""The end of `make run`: how long it waits for the pipelines. The pipelines here only say that they have not begun."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quire.client.shell_blocking import BlockingClient
from quire.console.stopping import Stop
from quire_samples.live import ending
from quire_samples.live.demo import Demo
from quire_samples.live.ending import drain
from quire_samples.live.figures import ResultReader

NOTHING = cast(BlockingClient, None)


class Pipelines:
    """Spark never starts, and the user presses Ctrl-C at the third look."""

    def __init__(self, stop: Stop, ctrl_c_at: int = 3) -> None:
        self.folders = [None]
        self.pipelines = SimpleNamespace(check=lambda: None)
        self.looks = 0
        self._stop = stop
        self._ctrl_c_at = ctrl_c_at

    def take_new(self) -> None:
        pass

    def statuses(self) -> dict[str, Any]:
        self.looks += 1
        self._stop.asked |= self.looks == self._ctrl_c_at
        return {}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    monkeypatch.setattr(ending, "run_for", lambda client, milliseconds: None)
    monkeypatch.setattr(Stop, "listen", lambda self: None)
    return Stop()


def test_ctrl_c_ends_the_wait_for_what_is_left(stop: Stop) -> None:
    pipelines = Pipelines(stop)
    assert not drain(NOTHING, cast(Demo, pipelines), cast(ResultReader, pipelines), stop)
    assert pipelines.looks == 3


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Every look at the clock takes a second."""
    passing = iter(range(1_000_000))
    monkeypatch.setattr(ending, "time", SimpleNamespace(monotonic=lambda: float(next(passing)), time=lambda: 0.0))
    return passing


def test_waiting_for_spark_to_start_is_bounded_and_the_user_is_told(
    stop: Stop, seconds: Iterator[int], capsys: pytest.CaptureFixture[str]
) -> None:
    pipelines = Pipelines(stop, ctrl_c_at=0)
    assert not drain(NOTHING, cast(Demo, pipelines), cast(ResultReader, pipelines), stop)
    assert ending.DRAIN_S < next(seconds) < ending.DRAIN_S + 10
    assert capsys.readouterr().out.splitlines() == ["Waiting for Spark, which is starting"], "said once"


def test_ctrl_c_takes_a_few_seconds_at_most(stop: Stop, seconds: Iterator[int]) -> None:
    stop.asked = True  # the Ctrl-C that started the end; it does not count as a second one
    pipelines = Pipelines(stop)
    assert not drain(NOTHING, cast(Demo, pipelines), cast(ResultReader, pipelines), stop)
    assert ending.LEAVE_DRAIN_S < next(seconds) < ending.LEAVE_DRAIN_S + 10
    assert ending.LEAVE_S <= 15
