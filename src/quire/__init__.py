"""Quire: a distributed commit log that speaks Kafka's protocol and keeps Kafka's files.

The folders follow the way of a request: socket bytes reach `network`, `node/api` finds the handler, `replication`
decides, `storage` keeps. Everything that touches the outside world stands behind the five seams of `quire.seams`.
"""

__version__ = "0.1.0"
