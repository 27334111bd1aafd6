"""Kafka's wire protocol: bytes to messages and back, record batches, error codes. No I/O and no state.

`apis` has the table of APIs, `schema` how a message class declares its fields, `messages` the classes, `codec` their
encoding, and `records` the contents of a batch. The package imports nothing above `quire.seams`.
"""
