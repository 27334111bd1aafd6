"""Transactions: the state machine behind `__transaction_state`, and the markers that end what it began."""
