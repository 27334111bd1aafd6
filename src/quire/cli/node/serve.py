"""Runs a node on the real clock, disk, threads and sockets, in an event loop, until a signal stops it.

`run_node` returns after an orderly stop, and raises `NodeFailedError` if the node could not start or continue.
It is the composition root: nothing else joins `quire.node` and `quire.real`.
"""

import errno
import logging
import signal
import socket
import time
from collections.abc import Callable

from quire.cli.node.lasting_objects import LastingObjects
from quire.config.broker_config import BrokerConfig
from quire.config.listeners import Listener
from quire.console.output import count
from quire.console.stopping import Request, StopRequests
from quire.metadata.features import UnsupportedMetadataError
from quire.node.node import Node
from quire.protocol.records import native_compiled
from quire.raft.errors import MetadataLogError
from quire.real.clock import RealClock
from quire.real.disk import RealDisk
from quire.real.jobs import ThreadJobs
from quire.real.loop import close_for_good, new_event_loop, on_stop_signal
from quire.real.loop_watch import LoopWatch
from quire.real.random import RealRandom
from quire.real.sockets import SocketNetwork
from quire.storage.errors import DataDirectoryError

log = logging.getLogger("quire")


LEAVE_WITHOUT_CONTROLLER = signal.SIGUSR1


class NodeFailedError(Exception):
    """The node could not start or continue; the text says why, and what to do."""


def warn_if_interpreted() -> None:
    if not native_compiled():
        log.warning("the loops over single records are not compiled, and slow: install a C compiler, then Quire again")


def check_ports(config: BrokerConfig) -> None:
    """Reports a port that is in use before the data is opened, which may take long."""
    for listeners, use in (
        (config.topology.broker_listeners, "clients"),
        (
            config.topology.controller_listeners,
            "the controller; by default the port after the clients'",
        ),
    ):
        for listener in listeners:
            if listener.port:
                try:
                    socket.create_server((listener.host, listener.port)).close()
                except OSError as error:
                    raise NodeFailedError(_why_not(listener, use, error)) from error


def _why_not(listener: Listener, use: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {listener.port} of {listener.host or 'this machine'} (for {use}) is in use by another program; "
            "stop that one, or choose another port with --listen HOST:PORT."
        )
    # Python appends the address, which the sentence has already.
    reason = (error.strerror or str(error)).partition(" (while attempting")[0].lower()
    return f"{listener.address} (for {use}) cannot be used: {reason}; choose another address with --listen HOST:PORT."


def run_node(
    config: BrokerConfig, on_ready: Callable[[str], None], *, control: bool = False, supervised: bool = False
) -> None:
    """Runs a node on this thread until SIGTERM or Ctrl-C; `on_ready` gets its HOST:PORT.

    With `control` it executes control lines from standard input (see `control`), and stops when the input ends. A
    `supervised` node was formatted by the supervisor, and takes `LEAVE_WITHOUT_CONTROLLER` for the news that the
    cluster stops and no longer has a controller.
    """
    started = time.monotonic()
    warn_if_interpreted()
    check_ports(config)
    loop = new_event_loop()
    clock = RealClock(loop)
    jobs = ThreadJobs(loop)
    node = Node(
        config,
        clock=clock,
        random=RealRandom(),
        disk=RealDisk(),
        jobs=jobs,
        network=SocketNetwork(
            loop,
            clock,
            jobs,
            send_buffer_bytes=config.get_int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.get_int("socket.receive.buffer.bytes"),
        ),
        may_format=not supervised,
    )
    requests = StopRequests()
    stopping = stopped = False
    failure = ""
    watch: LoopWatch | None = None

    def signalled(number: int) -> None:
        request = requests.arrived(number)
        if request is Request.FIRST:
            stop()
        elif request is Request.SECOND and not stopped:
            fail("a second signal stopped the node at once; the next start recovers the logs that were not closed.")

    def stop() -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            node.stop().when_done(lambda _: end())

    def leave_without_controller() -> None:
        if node.broker is not None:
            node.broker.leave_without_controller()

    def end() -> None:
        nonlocal stopped
        stopped = True
        loop.stop()

    def fail(reason: str) -> None:
        nonlocal failure
        failure = failure or reason
        loop.stop()

    def ready(address: str) -> None:
        nonlocal watch
        LastingObjects(clock, lambda: node.image.partition_count).node_is_ready()
        image = node.image
        topics = [image.topic(name) for name in image.topics_by_name]
        log.info(
            "serving %s, data in %s, %s with %s, started in %d ms",
            address,
            ", ".join(config.log_dirs),
            count(len(topics), "topic"),
            count(sum(len(topic.partitions) for topic in topics if topic is not None), "partition"),
            (time.monotonic() - started) * 1000,
        )
        watch_ms = config.get_int("quire.loop.watch.ms")
        if watch_ms:
            watch = LoopWatch(loop, watch_ms)
        on_ready(address)

    node.failed = fail
    node.ready.when_done(ready)
    on_stop_signal(loop, signalled)
    if supervised:
        loop.call_soon(loop.add_signal_handler, LEAVE_WITHOUT_CONTROLLER, leave_without_controller)
    try:
        if control:
            from quire.cli.node.control import read_control_lines

            read_control_lines(loop, node, stop, leave_without_controller)
        node.start()
        loop.run_forever()
    except (DataDirectoryError, MetadataLogError, UnsupportedMetadataError, OSError) as error:
        failure = str(error)
    finally:
        if watch is not None:
            watch.stop()
        jobs.stop()
        close_for_good(loop)
    if failure:
        raise NodeFailedError(f"{failure.rstrip('.')}.")
    log.info("stopped cleanly")
