"""The server: framing of requests, connections, and the listeners that accept them.

This package uses only the seams (Network, Transport, Clock), so it runs on real sockets, on TLS and in the simulator.
It knows where a request begins and ends; the node's `handle` knows what it means. It may import only the seams and
`quire.pending`.
"""
