"""Quire: a distributed commit log that speaks Kafka's protocol and keeps Kafka's files.

The folders follow the path of a request: socket bytes reach `network`, `node/api` has the handler, `replication`
decides, and `storage` writes. Everything that uses the outside world goes through the five seams in `quire.seams`.
"""

__version__ = "0.1.0"
