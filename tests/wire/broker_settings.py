"""The settings that the wire tests need on the broker: shorter waits.

`conftest` gives them to Quire, `interop.wire_broker` to Apache Kafka.
"""

SETTINGS: dict[str, str | int] = {
    # Many records in the tests are old, and must not expire during a test.
    "log.initial.task.delay.ms": 24 * 3600 * 1000,
    # A new group waits this long for more members before it assigns partitions.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    # A member learns its assignment only from heartbeats.
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 3000,
    # Assignments are computed at once, and not at most once per interval.
    "group.consumer.assignment.interval.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
