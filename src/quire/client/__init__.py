"""Quire's own client: admin, producer and consumer, for any broker that speaks Kafka's protocol.

The logic is built on the seams of `quire.seams`, like a node is: it asks a Clock for the time and a Network for
connections, and waits through `Pending`. The same code therefore runs blocking in the command line and in Spark's tasks
(`shell_blocking`), on an asyncio loop (`shell_asyncio`) and in the simulator. From the bottom up:

    connection   one connection's bytes: frames, correlation ids, version negotiation
    link         a connection that comes back: waiting calls, time-outs, back-off
    metadata     what the cluster looks like, as last heard
    cluster      sends a request to the right broker
    leaders, coordinators
                 send each of them its share of a question, and ask again while they move
    accumulator, partition_queue, transactions
                 a producer's records, their order and numbering, and what they are part of
    fetch_session, fetcher
                 reading ahead of the caller
    group_offsets
                 how far a group has come
    admin, producer, consumer

Only files named `shell_*` touch sockets and real clocks.
"""
