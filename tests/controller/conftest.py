"""The managers place any number of replicas, although brokers do not copy partitions yet."""

import pytest

from quire.controller import create_topics


@pytest.fixture(autouse=True)
def several_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create_topics, "MOST_REPLICAS", 5)
