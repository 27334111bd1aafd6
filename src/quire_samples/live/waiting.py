"""Runs the client's loop for a while, so that its connections make progress."""

import time

from quire.client.shell_blocking import BlockingClient


def run_for(client: BlockingClient, milliseconds: float) -> None:
    until = time.monotonic() + milliseconds / 1000
    while (left := until - time.monotonic()) > 0:
        client.loop.run_once(left * 1000)
