"""Making logs durable: `log_flush.py` for one log, `flusher.py` in jobs, `flush_schedule.py` by time."""
