"""Every message of Kafka 4.3, one file per API: the request, the response and their structures.

The classes are the schema: each field says in which versions it exists, may be null or is tagged. Import the module you
need; `quire.protocol.apis` finds the classes of a request by its key. The files whose names end in `_records`, and
`headers`, `quorum_state`, `producer_snapshot`, `consumer_protocol` and `principal`, hold messages of no API.
"""
