"""For all tests: properties are about behaviour, never about how long an example took on a busy machine."""

from hypothesis import settings

settings.register_profile("quire", deadline=None)
settings.load_profile("quire")
