"""A Spark cluster on this machine, from the pip package: a master and workers, each in its own process."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.free_ports import free_ports
from tests.spark.conftest import spark_environment
from tests.wire.clients import eventually

WORKERS = 2
START_S = 120.0
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""For a Java process that lives for a minute: optimizing its code would take longer than it saves."""
_CLASS = "org.apache.spark.deploy"


class StandaloneCluster:
    """On 127.0.0.1, with one core and little memory for each worker."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self._folder = folder
        self._master = self._start(
            "master", f"{_CLASS}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
        self._workers = {
            name: self._start(
                name,
                f"{_CLASS}.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"),
                *("--work-dir", str(folder / f"{name}-work"), self.master),
            )
            for name in (f"worker-{number}" for number in range(WORKERS))
        }
        eventually(lambda: self.log("master").count("Registering worker") == WORKERS, START_S)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def kill_worker(self) -> None:
        """Kills the first worker with SIGKILL; its executor ends too."""
        name = next(iter(self._workers))
        process = self._workers.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Stops workers and master with SIGTERM: a worker then ends the processes that it has started."""
        for process in [*self._workers.values(), self._master]:
            process.terminate()
            process.wait(START_S)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        spark_home = Path(pyspark.__file__).parent
        environment = (
            os.environ
            | spark_environment()
            | {
                "SPARK_HOME": str(spark_home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
                "SPARK_LOCAL_DIRS": str(self._folder),
            }
        )
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [str(spark_home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
            )


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[StandaloneCluster]:
    cluster = StandaloneCluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
