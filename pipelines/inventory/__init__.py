"""The archive of an inventory, for the audit: all events and refusals in a Delta lake.

The inventory itself, its commands and its processor, are in `quire_samples.inventory`; `inventory.yaml` runs all of it.
"""
