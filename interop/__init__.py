"""Apache Kafka beside Quire: its server on Quire's files, its tools against Quire's nodes. `make interop` runs it.

It needs Java and Maven. Running and testing Quire itself never needs it.
"""
