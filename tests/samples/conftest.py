"""A real node for the tests of one file, as the tests of the command line have it."""

from tests.cli.conftest import servers, settings

__all__ = ["servers", "settings"]
