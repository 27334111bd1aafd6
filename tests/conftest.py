"""For all tests: property tests have no deadline and may be slow, because machines may be busy."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("quire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quire")

# A shell that starts the tests in the background makes them, and every program that they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
