"""Quire's own client: admin, producer and consumer, for any broker that speaks Kafka's protocol.

Like a node, the client uses the seams in `quire.seams`: a Clock for the time, a Connector for connections, and
`Pending` for results that come later. So the same code runs blocking in the command line and in Spark's tasks
(`shell_blocking`), on an asyncio loop (`shell_asyncio`) and in the simulator. From the bottom up:

    connection   one connection's bytes: frames, correlation ids, version negotiation
    link         a connection that reconnects: waiting calls, time-outs, back-off
    metadata     a cache of the cluster's brokers, topics and leaders
    cluster      sends a request to the right broker
    leaders, coordinators
                 divide a request among leaders or coordinators, and retry while these move
    accumulator, partition_queue, transactions
                 a producer's records, their order and sequence numbers, and their transactions
    fetch_session, fetcher
                 fetching ahead of the caller
    group_offsets
                 the committed offsets of a group
    admin, producer, consumer

Only files named `shell_*` touch sockets and real clocks.
"""
