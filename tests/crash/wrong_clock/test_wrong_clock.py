"""The clock of a process is wrong by the given amount, and monotonic time is not affected."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.crash.wrong_clock import wrong_clock

ASK = """
import datetime, json, time, threading
began = time.monotonic()
threading.Event().wait(0.01)  # would take an hour, or no time at all, if its deadline were a time of day
waited = time.monotonic() - began
print(json.dumps([time.time(), time.time_ns() / 1e9, datetime.datetime.now().timestamp(), time.monotonic(), waited]))
"""


@pytest.mark.parametrize("shift_s", [3600, -3600])
def test_the_time_of_day_is_shifted_and_elapsed_time_is_not(shift_s: int) -> None:
    began_s = time.monotonic()
    answer = subprocess.run(
        [sys.executable, "-c", ASK], env=os.environ | wrong_clock(shift_s), capture_output=True, check=True, timeout=60
    )
    *times_of_day, monotonic_s, waited_s = json.loads(answer.stdout)
    for time_of_day in times_of_day:
        assert abs(time_of_day - time.time() - shift_s) < 100
    assert began_s < monotonic_s < time.monotonic()
    assert 0.01 <= waited_s < 100
