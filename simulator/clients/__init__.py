"""Simulated clients. They send request bytes over simulated connections, misbehave as clients on a bad network do, and
write what they requested and what they were answered into the ledger.
"""
