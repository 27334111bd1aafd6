"""What Quire costs and how fast it is, beside Apache Kafka: one command each, never part of the tests.

Both sides run with their default settings on the same disk, are warmed, take turns at least three times, and are
compared by medians with the same librdkafka client. A bare pwrite beside them shows what the machine itself gave.
"""
