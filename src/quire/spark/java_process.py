"""Spark's Java process: started in a session of its own, and ended if its start is interrupted.

Ctrl-C at a terminal, `kill %1` and `timeout` signal whole process groups. In our group, Java and the Python workers
would be killed in the middle of a batch that this process is still waiting for.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark import SparkConf, SparkContext, java_gateway


def start_apart(wanted: Mapping[str, str]) -> None:
    """Starts Spark in a new process session, unless it is already running."""
    if SparkContext._active_spark_context is not None:
        return
    conf = SparkConf().setAll(list(wanted.items()))
    with _ended_if_interrupted():
        gateway = java_gateway.launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Delays Ctrl-C and SIGTERM: an exception inside of Popen would leave a process that is in no list."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _: arrived.append(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """On KeyboardInterrupt, kills the process that was started. Left alone, Java would wait for its client forever."""
    started: list[subprocess.Popen[bytes]] = []

    def popen(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        with _signals_held_back():
            process = subprocess.Popen(*arguments, **options)
            started.append(process)
        return process

    java_gateway.Popen = popen  # type: ignore[assignment,attr-defined]  # pyspark keeps the process to itself until Java answers
    try:
        yield
    except KeyboardInterrupt:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        SparkContext._gateway = SparkContext._jvm = None
        raise
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]
