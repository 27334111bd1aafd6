"""`quire transactions`: what coordinators know (`transactions`) and what partitions have open (`open_transactions`)."""
