"""Requests in, answers out: framing, connections, and the server that accepts them.

Everything here stands on the seams (Network, Transport, Clock) and so runs on real sockets, on TLS and in the simulator
alike. It knows where a request begins and ends, but not what it says: the node's `handle` does. It may import the
seams and `quire.pending` alone.
"""
