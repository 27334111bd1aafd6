"""Opening all logs of a data directory, as a start does."""

from collections.abc import Callable
from typing import NoReturn

from quire.storage.directory.log_directory import LogDirectory
from quire.storage.few_jobs import FewJobs
from quire.storage.log_config import LogConfig
from tests.storage.manual_jobs import ManualJobs


def load_logs(directory: LogDirectory, jobs: ManualJobs, config_of: Callable[[str], LogConfig]) -> None:
    """Runs jobs, in order, until the logs are open."""
    loaded: list[bool] = []
    directory.load_logs(config_of, FewJobs(jobs, 1), lambda: loaded.append(True), _unexpected)
    while not loaded:
        jobs.run_next()


def _unexpected(error: Exception) -> NoReturn:
    raise error
