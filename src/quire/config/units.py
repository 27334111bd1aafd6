"""Units for the tables of keys, so that these need no long numbers."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308
