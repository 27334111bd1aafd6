"""Speed and cost of Quire, compared with Apache Kafka: one command each, not part of the tests.

Both sides run with their default settings on the same disk, are warmed up, take turns at least three times, and are
compared by medians with the same librdkafka client. A bare pwrite beside them shows the speed of the machine itself.
"""
