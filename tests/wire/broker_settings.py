"""The settings that the wire tests need on the broker: waits made for people are shortened.

`conftest` gives them to Quire, `interop.wire_broker` to an Apache Kafka.
"""

SETTINGS: dict[str, str | int] = {
    # Many records here are from long ago, and must not be found to be too old in the middle of a test.
    "log.initial.task.delay.ms": 24 * 3600 * 1000,
    # A new group waits this long for more members before it gives out partitions.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    # A member learns only by a heartbeat what it is to give up or take.
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 3000,
    # Assignments are worked out at once, not at most once in this time.
    "group.consumer.assignment.interval.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
