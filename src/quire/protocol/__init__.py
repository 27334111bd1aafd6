"""Kafka's wire protocol: bytes to messages and back, record batches, error codes. No I/O and no state.

Read `apis` for the table of APIs, `schema` for how a message class declares its fields, `messages` for the classes and
`codec` for how they become bytes. `records` is about what is inside a batch. Imports nothing above `quire.seams`.
"""
