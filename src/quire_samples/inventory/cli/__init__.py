"""The commands of the inventory, one file each: `send`, `process`, `view` and `check`."""
