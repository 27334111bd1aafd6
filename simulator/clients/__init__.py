"""Simulated clients: they speak request bytes over simulated connections, misbehave as networks make clients do, and
write into the ledger what they asked for and what they were told.
"""
