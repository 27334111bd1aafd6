"""Apache Kafka beside Quire: its server on Quire's files, its tools against Quire's nodes. `make interop` runs it.

Needs Java and Maven, and is never needed to run or test Quire itself.
"""
