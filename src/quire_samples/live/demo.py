"""The processes of `make run`: the pipelines on Spark and the senders, each started as a user would start it."""

import os
import time
from typing import Any

from quire.console.failure import Failure
from quire.console.terminal import echo
from quire.spark.state_folder import StateFolder
from quire_samples.live.child import CHILD_PATIENCE_S, Child
from quire_samples.live.figures import Figures

SHOP, INVENTORY = "shop", "inventory"
SAMPLES = ("-m", "quire_samples")
FEW_EVENTS = (
    # Java's optimizing compiler uses a core for the first minute; only long runs gain from it. The parallel garbage
    # collector takes a tenth of Java's time until the first results.
    *("--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    # A hundred events a second are too few to divide: every partition has its own task and its own state.
    *("--conf", "spark.sql.shuffle.partitions=1"),
)


class Demo:
    """The child processes of `make run`, and their state."""

    def __init__(self, address: str, folder: str, state: str, folders: list[StateFolder], started: float) -> None:
        self.address = address
        self.folders = folders
        self.started = started
        self.figures = Figures()
        self.senders: dict[str, Child] = {}
        self._state = state
        self._names = [found.pipeline.name for found in folders]
        self._spark_up_s: float | None = None
        self._first_results_s: float | None = None
        os.makedirs(state, exist_ok=True)
        run = ["pipelines", "run", *self._names, *FEW_EVENTS, "--quiet", "--folder", folder, "--state", state]
        self.pipelines = self._child("pipelines", run)

    def send(self, rate: float, speed: float) -> None:
        shop = ["shop", "send", "--json", "--rate", str(rate), "--speed", str(speed)]
        self.senders[SHOP] = self._child("shop-send", [*SAMPLES, *shop])
        if INVENTORY in self._names:
            inventory = ["inventory", "send", "--json", "--rate", str(rate / 5)]
            self.senders[INVENTORY] = self._child("inventory-send", [*SAMPLES, *inventory])

    def _child(self, name: str, command: list[str]) -> Child:
        return Child(name, [*command, "-b", self.address], os.path.join(self._state, f"{name}.log"))

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    def statuses(self) -> dict[str, dict[str, Any]]:
        """The current status of the pipelines, without what an earlier run has left."""
        said = {folder.pipeline.name: folder.status() for folder in self.folders}
        return {name: status for name, status in said.items() if status.get("pid") == self.pipelines.process.pid}

    def shown(self) -> dict[str, dict[str, Any]]:
        """The same; a pipeline without a status yet is shown with all queries starting."""
        return {found.pipeline.name: found.status_in(self.pipelines.process.pid) for found in self.folders}

    def has_read(self) -> bool:
        """Whether this run has completed a batch. Before that there is nothing to sum up, and nothing to lose."""
        queries = [query for status in self.statuses().values() for query in status["queries"]]
        return any(query["batch_ms"] is not None for query in queries)

    def kill(self) -> None:
        for child in (self.pipelines, *self.senders.values()):
            child.kill()

    def check_inventory(self) -> None:
        """Fails unless the view, the history and the lake result in the same stock."""
        lake = os.path.join(self._state, "lake", "inventory", "events")
        check = self._child("inventory-check", [*SAMPLES, "inventory", "check", "--lake", lake, "--wait", "0"])
        out, _ = check.process.communicate(timeout=CHILD_PATIENCE_S)
        echo(out.decode(errors="replace").strip() or check.last_words())
        if check.process.returncode:
            raise Failure("the inventory does not add up; please report it.")

    def check(self) -> None:
        for child in (self.pipelines, *self.senders.values()):
            child.check()

    def notice(self) -> list[str]:
        """What has happened for the first time since the last call."""
        news = []
        if self._spark_up_s is None and len(self.statuses()) == len(self.folders):
            self._spark_up_s = self.elapsed_s
            news.append(f"Spark is up after {self._spark_up_s:.0f} s")
        if self._first_results_s is None and self._spark_up_s and self.figures.results:
            self._first_results_s = self.elapsed_s
            news.append(f"first results {self._first_results_s - self._spark_up_s:.0f} s after Spark was up")
        return news
