"""The end of `make run`: how long it waits for the pipelines. The pipelines here only say that they have not begun."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from quire.cli import live_demo
from quire.cli.live_demo import Demo, drain
from quire.cli.live_figures import ResultReader
from quire.cli.stopping import Stop
from quire.client.shell_blocking import BlockingClient

NOTHING = cast(BlockingClient, None)


class Pipelines:
    """Spark that never comes up, and whoever looks at it for the third time is pressing Ctrl-C."""

    def __init__(self, stop: Stop) -> None:
        self.folders = [None]
        self.pipelines = SimpleNamespace(check=lambda: None)
        self.looks = 0
        self._stop = stop

    def take_new(self) -> None:
        pass

    def statuses(self) -> dict[str, Any]:
        self.looks += 1
        self._stop.asked |= self.looks == 3
        return {}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    monkeypatch.setattr(live_demo, "_let_happen", lambda client, milliseconds: None)
    monkeypatch.setattr(Stop, "listen", lambda self: None)
    return Stop()


def test_ctrl_c_ends_the_wait_for_what_is_left(stop: Stop) -> None:
    pipelines = Pipelines(stop)
    assert not drain(NOTHING, cast(Demo, pipelines), cast(ResultReader, pipelines), stop)
    assert pipelines.looks == 3


def test_a_spark_that_does_not_come_up_is_not_waited_for_without_end_and_one_hears_of_it(
    stop: Stop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter(range(1_000_000))
    monkeypatch.setattr(live_demo, "time", SimpleNamespace(monotonic=lambda: float(next(seconds)), time=lambda: 0.0))
    stop.asked = True  # as after the Ctrl-C that had the end begin; it is not taken for a second one
    pipelines = Pipelines(stop)
    assert not drain(NOTHING, cast(Demo, pipelines), cast(ResultReader, pipelines), stop)
    assert next(seconds) < live_demo.DRAIN_S + 10
    assert set(capsys.readouterr().out.splitlines()) == {"Spark is still starting"}
