"""Valid requests of every API, damaged at random, for a bounded time.

A failure prints its seed and saves the inputs beside this file in saved/; `test_saved_inputs.py` replays them from then
on. `QUIRE_FUZZ_SEED` repeats a run, `QUIRE_FUZZ_SECONDS` makes it longer.
"""

import hashlib
import os
import random
import secrets
import time
from collections import deque
from pathlib import Path

import pytest

from quire.protocol import apis
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fuzz.generate import damaged, framed, request
from tests.fuzz.victim import Victim

SAVED = Path(__file__).parent / "saved"
SECONDS = float(os.environ.get("QUIRE_FUZZ_SECONDS", "8"))
GROWTH_LIMIT_BYTES = 80_000_000
REMEMBERED = 5
AT_LEAST = 100


def advertised(victim: Victim) -> list[tuple[int, int, int]]:
    answer = victim.bystander.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    return [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys if api.api_key in apis.API_NAMES]


def save(inputs: deque[bytes]) -> Path:
    """One line per connection, in hexadecimal."""
    text = "".join(f"{data.hex()}\n" for data in inputs)
    path = SAVED / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.hex"
    path.write_text(text)
    return path


def fuzz(victim: Victim, seed: int, seconds: float) -> int:
    """Sends damaged requests until the time is up, and more than a few; returns their number."""
    rng = random.Random(seed)
    keys = advertised(victim)
    started_with = victim.resident_bytes
    recent: deque[bytes] = deque(maxlen=REMEMBERED)
    count = 0
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline or count < AT_LEAST:
            data = b"".join(framed(rng, damaged(rng, request(rng, keys))) for _ in range(rng.choice([1, 1, 1, 3])))
            if rng.random() < 0.05:
                data = rng.randbytes(rng.randrange(1, 200))
            recent.append(data)
            victim.throw(data)
            victim.assert_unharmed()
            assert victim.resident_bytes - started_with < GROWTH_LIMIT_BYTES
            count += 1
    except BaseException:
        path = save(recent)
        print(f"QUIRE_FUZZ_SEED={seed}: input {count} failed; the last {len(recent)} are in {path}")
        raise
    return count


def test_no_damaged_request_harms_the_node(victim: Victim) -> None:
    seed = int(os.environ.get("QUIRE_FUZZ_SEED", secrets.randbits(32)))
    count = fuzz(victim, seed, SECONDS)
    print(f"seed {seed}: {count} inputs")


@pytest.mark.soak
def test_no_damaged_request_harms_the_node_for_long(victim: Victim) -> None:
    fuzz(victim, secrets.randbits(32), 300)
