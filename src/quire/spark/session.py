"""A SparkSession with settings for streams on one machine, and a clear error if Spark cannot start.

Spark's defaults are for clusters: with 200 shuffle partitions, a micro-batch of a few rows takes seconds. Its Python
workers must use the same interpreter and modules as this process.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from quire.spark import INSTALL_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class SparkMissingError(Exception):
    """Spark cannot start here; the text says what to install."""


def settings(cores: int) -> dict[str, str]:
    """The default settings of a session."""
    return {
        "spark.driver.memory": "1g",
        "spark.python.authenticate.socketTimeout": "60s",  # what a worker may take to start
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": ROCKS_DB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a batch writes what changed
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


LOCAL_ONLY = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def spark_session(
    name: str = "quire",
    master: str | None = None,
    extra_settings: Mapping[str, str] | None = None,
    log_path: str | None = None,
) -> "SparkSession":
    """The session of this process, created if there is none; `master` is local[*] by default.

    Spark logs errors to standard error, or errors and warnings to the end of a file. With a file, Spark is detached
    from the terminal: Ctrl-C reaches only this process.
    """
    require_spark()
    from pyspark.sql import SparkSession

    master = master or "local[*]"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = python_path(sys.path, os.environ.get("PYTHONPATH", ""))
    wanted = settings(os.cpu_count() or 1) | {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
    if master.startswith("local"):
        wanted |= LOCAL_ONLY
    wanted |= {"spark.master": master, "spark.app.name": name, **(extra_settings or {})}
    builder = SparkSession.builder
    for key, value in wanted.items():
        builder = builder.config(key, value)
    if log_path is None:
        session: SparkSession = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session
    from quire.spark.java_process import start_apart

    _silence_query_contexts()
    with _stderr_into(log_path):
        start_apart(wanted)
        return builder.getOrCreate()


def _silence_query_contexts() -> None:
    """Spark prints a page of JSON about a wrong column in a job, in addition to the exception."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _stderr_into(path: str) -> Iterator[None]:
    """Redirects standard error to the file; processes that are started meanwhile keep the file."""
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def python_path(imported_from: list[str], given: str) -> str:
    """PYTHONPATH for the workers: the import path of this process without the interpreter's own folders."""
    own = [folder for folder in imported_from if not folder.startswith((sys.prefix, sys.base_prefix))]
    folders = [os.path.abspath(folder) for folder in [*own, *given.split(os.pathsep)] if not folder.endswith(".zip")]
    return os.pathsep.join(dict.fromkeys(folders))


def require_spark() -> None:
    """Raises SparkMissingError unless pyspark and a suitable Java are installed."""
    if find_spec("pyspark") is None:
        raise SparkMissingError(f"Spark is not installed; install it with: {INSTALL_SPARK}")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None and home:
        raise SparkMissingError(
            f"Spark needs Java {OLDEST_JAVA} or newer and JAVA_HOME ({home}) has no bin/java that runs; "
            "set it to where Java is, or unset it"
        )
    if java is None:
        raise SparkMissingError(
            f"Spark needs Java {OLDEST_JAVA} or newer and there is none; "
            "install openjdk-17-jre-headless, or set JAVA_HOME"
        )
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = java_version(said)
    if version is not None and version < OLDEST_JAVA:
        raise SparkMissingError(
            f"Spark needs Java {OLDEST_JAVA} or newer and {java} is version {version}; "
            "install openjdk-17-jre-headless, or set JAVA_HOME to a newer one"
        )


def java_version(said: str) -> int | None:
    """The major version in the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_392"."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None
