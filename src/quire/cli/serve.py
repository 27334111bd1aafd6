"""Where a node meets the world: real clock, disk, threads and sockets, an event loop, and the signals that stop it.

`run_node` returns when the node has stopped because it was asked to, and raises `NodeFailedError` when it could not
start or not go on. It is the composition root: nothing else puts `quire.node` and `quire.real` together.
"""

import errno
import logging
import socket
import time
from collections.abc import Callable

from quire.cli.lasting_objects import LastingObjects
from quire.cli.output import count
from quire.config.broker_config import BrokerConfig
from quire.config.listeners import Listener
from quire.metadata.features import UnsupportedMetadataError
from quire.node.node import Node
from quire.protocol.records import native_compiled
from quire.raft.errors import MetadataLogError
from quire.real.clock import RealClock
from quire.real.disk import RealDisk
from quire.real.jobs import ThreadJobs
from quire.real.loop import new_event_loop, on_stop_signal
from quire.real.loop_watch import LoopWatch
from quire.real.random import RealRandom
from quire.real.sockets import SocketNetwork
from quire.storage.errors import DataDirectoryError

log = logging.getLogger("quire")


class NodeFailedError(Exception):
    """One sentence that says why the node ended and what to do."""


def warn_if_interpreted() -> None:
    if not native_compiled():
        log.warning("the loops over single records are not compiled, and slow: install a C compiler, then Quire again")


def check_ports(config: BrokerConfig) -> None:
    """Says that a port is taken before the data is opened, which may take long."""
    for listeners, use in (
        (config.topology.broker_listeners, "clients"),
        (
            config.topology.controller_listeners,
            "the controller, one above the clients' unless listeners says otherwise",
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
    reason = (error.strerror or str(error)).lower()
    return f"{listener.address} (for {use}) cannot be listened on: {reason}; see --listen HOST:PORT."


def run_node(config: BrokerConfig, on_ready: Callable[[str], None], *, control: bool = False) -> None:
    """Runs a node on this thread until SIGTERM or Ctrl-C; `on_ready` gets its HOST:PORT.

    With `control` it obeys lines on standard input (see `control`) and stops when they end.
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
    )
    stopping = False
    failure = ""
    watch: LoopWatch | None = None

    def stop() -> None:
        nonlocal stopping
        if stopping:
            fail("it was told to stop twice and did so at once; the next start recovers what was not closed.")
        else:
            stopping = True
            node.stop().when_done(lambda _: loop.stop())

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
    on_stop_signal(loop, stop)
    try:
        if control:
            from quire.cli.control import obey_stdin

            obey_stdin(loop, node, lambda: None if stopping else stop())
        node.start()
        loop.run_forever()
    except (DataDirectoryError, MetadataLogError, UnsupportedMetadataError, OSError) as error:
        failure = str(error)
    finally:
        if watch is not None:
            watch.stop()
        jobs.stop()
        loop.close()
    if failure:
        raise NodeFailedError(f"{failure.rstrip('.')}.")
    log.info("stopped cleanly")
