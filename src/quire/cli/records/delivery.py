"""Waits until every record of `quire produce` is delivered or has failed, and reports those that were not delivered.

A signal ends the waiting within a second if the broker acknowledges nothing: the records that are left are counted as
not delivered, though those in flight may be in the log.
"""

from quire.client.producer import Producer
from quire.client.shell_loop import BlockingLoop
from quire.console.explain import explain
from quire.console.failure import Failure
from quire.console.output import count
from quire.console.stopping import Stop

STALLED_MS = 750.0
"""After Ctrl-C or SIGTERM, the rest is given up if no record was delivered for this long."""
STOPPING_PATIENCE_MS = 5_000.0
"""How long delivering the rest may take after Ctrl-C or SIGTERM, while records are still delivered."""


def deliver(loop: BlockingLoop, producer: Producer, stop: Stop) -> None:
    """Returns when all records are delivered; otherwise raises a Failure, or what ends a command after a signal.

    A signal has to wake the loop.
    """
    flushed = producer.flush()
    while not flushed.done and not stop.asked:
        loop.run_once(60_000)
    since_ms = loop.monotonic_ms()
    last_ms = since_ms + STOPPING_PATIENCE_MS
    delivered = producer.delivered_records
    while not flushed.done:
        now_ms = loop.monotonic_ms()
        if producer.delivered_records > delivered:
            delivered, since_ms = producer.delivered_records, now_ms
        left_ms = min(since_ms + STALLED_MS, last_ms) - now_ms
        if left_ms <= 0:
            break
        loop.run_once(left_ms)
    stop_if_failed(producer, stop)
    stop.end_if_asked()


def stop_if_failed(producer: Producer, stop: Stop) -> None:
    """A Failure that counts the records, if one has failed, or if a signal ended the waiting for one."""
    lost, written = producer.failed_records, producer.delivered_records
    if stop.asked:
        lost += producer.undelivered_records
    if not lost:
        return
    reason, exit_code = "the command was stopped before the broker acknowledged the rest.", stop.exit_code
    if producer.first_error is not None:
        failure = explain(producer.first_error)
        reason = failure.message
        exit_code = stop.exit_code if stop.asked else failure.exit_code
    raise Failure(
        f"{count(lost, 'record')} {'was' if lost == 1 else 'were'} not delivered and {written:,} "
        f"{'was' if written == 1 else 'were'}: {reason}",
        exit_code,
    )
