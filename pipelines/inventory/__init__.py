"""The archive of an inventory, for the audit: every event and every refusal there ever was, in a Delta lake.

The inventory itself, its commands and its processor, are in `quire.inventory`; `inventory.yaml` runs all of it.
"""
