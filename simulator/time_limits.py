"""How long the phases of a run may take at most, in virtual time. A run that takes longer hangs."""

START_LIMIT_MS = 30_000.0
STOP_LIMIT_MS = 30_000.0
PAUSE_LIMIT_MS = 60_000.0
FINISH_LIMIT_MS = 120_000.0
REPLICATION_LIMIT_MS = 60_000.0
"""Until all replicas are in sync again, and until they are equal."""
RELEASE_LIMIT_MS = 40_000.0
"""A write in a transaction waits half a minute if the coordinator's answer is lost."""
