"""An option replaces an address or a folder of a file, and contradicts no other setting silently."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError, ContradictionError
from tests.config.test_standalone import STOCK_SERVER_PROPERTIES

STOCK = ("server.properties", STOCK_SERVER_PROPERTIES)
SASL = ("server.properties", "listeners=SASL_PLAINTEXT://127.0.0.1:9092\nsasl.enabled.mechanisms=PLAIN\n")
NAMED = (
    "server.properties",
    "listeners=INSIDE://:9092,OUTSIDE://:9094\nlistener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT\n",
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"listen": "127.0.0.1:7000", "assignments": ["listeners=SASL_PLAINTEXT://127.0.0.1:9092"]},
            "--listen 127.0.0.1:7000 and --set listeners=SASL_PLAINTEXT://127.0.0.1:9092 contradict each other: remove "
            "one of them.",
        ),
        (
            {"listen": "127.0.0.1:7000", "assignments": ["listeners=PLAINTEXT://127.0.0.1:9092"]},
            "--listen 127.0.0.1:7000 and --set listeners=PLAINTEXT://127.0.0.1:9092 contradict each other: remove one "
            "of them.",
        ),
        (
            {"listen": "127.0.0.1:7000", "file": SASL},
            "--listen 127.0.0.1:7000 would replace SASL_PLAINTEXT://127.0.0.1:9092 (server.properties line 1) with a "
            "listener that is open to everyone: change listeners there, or override it with --set listeners=.",
        ),
        (
            {"free_port": True, "file": SASL},
            "--ephemeral would replace SASL_PLAINTEXT://127.0.0.1:9092 (server.properties line 1) with a listener that "
            "is open to everyone: change listeners there, or override it with --set listeners=.",
        ),
        (
            {"listen": "127.0.0.1:7000", "environment": {"QUIRE_LISTENERS": "SSL://:9092"}},
            "--listen 127.0.0.1:7000 would replace SSL://:9092 (environment variable QUIRE_LISTENERS) with a listener "
            "that is open to everyone: change listeners there, or override it with --set listeners=.",
        ),
        (
            {"listen": "127.0.0.1:7000", "file": NAMED},
            "--listen 127.0.0.1:7000 would replace INSIDE://:9092 and OUTSIDE://:9094 (server.properties line 1) with "
            "a listener that is open to everyone: change listeners there, or override it with --set listeners=.",
        ),
        (
            {"listen": "127.0.0.1:7000", "file": STOCK},
            "--listen 127.0.0.1:7000 and advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093 "
            "(server.properties line 8) contradict each other, because clients would be sent to port 9092: add --set "
            "advertised.listeners=PLAINTEXT://localhost:7000.",
        ),
        (
            {"data_dir": "/new", "assignments": ["log.dirs=/old"]},
            "--data /new and --set log.dirs=/old contradict each other: remove one of them.",
        ),
        (
            {"data_dir": "/new", "assignments": ["log.dir=/old"]},
            "--data /new and --set log.dir=/old contradict each other: remove one of them.",
        ),
        (
            {"data_dir": "/new", "file": ("f", "metadata.log.dir=/meta")},
            "--data /new would leave the metadata log in metadata.log.dir=/meta (f line 1): add --set "
            "metadata.log.dir=/new, or the folder where it is to be.",
        ),
        (
            {"temporary_dir": "/tmp/x", "assignments": ["log.dirs=/old"]},
            "--ephemeral and --set log.dirs=/old contradict each other: remove one of them, or use --data for data "
            "that is kept.",
        ),
        (
            {"file": ("f", "log.dirs=/old"), "assignments": ["log.dir=/new"]},
            "--set log.dir=/new has no effect, because log.dirs=/old (f line 1) counts instead: set log.dirs.",
        ),
        (
            {"file": ("f", "log.retention.ms=5"), "environment": {"QUIRE_LOG_RETENTION_HOURS": "1"}},
            "log.retention.hours=1 (environment variable QUIRE_LOG_RETENTION_HOURS) has no effect, because "
            "log.retention.ms=5 (f line 1) counts instead: set log.retention.ms.",
        ),
    ],
)
def test_contradictions_are_refused_in_the_users_own_words(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ContradictionError) as caught:
        BrokerConfig.load(**arguments)  # type: ignore[arg-type]
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("arguments", "listeners", "advertised"),
    [
        (
            {"listen": "127.0.0.1:9092", "assignments": ["listeners=PLAINTEXT://127.0.0.1:9092"]},
            "PLAINTEXT://127.0.0.1:9092",
            "PLAINTEXT://127.0.0.1:9092",
        ),
        (
            {"listen": ":7000", "file": STOCK, "assignments": ["advertised.listeners=PLAINTEXT://box:9092"]},
            "PLAINTEXT://:7000",
            "PLAINTEXT://box:9092",
        ),
        ({"listen": "10.0.0.1:9092", "file": STOCK}, "PLAINTEXT://10.0.0.1:9092", "PLAINTEXT://localhost:9092"),
        (
            {"listen": "0.0.0.0:9092", "environment": {"QUIRE_ADVERTISED_LISTENERS": "PLAINTEXT://box:19092"}},
            "PLAINTEXT://0.0.0.0:9092",
            "PLAINTEXT://box:19092",
        ),
        ({"free_port": True, "file": STOCK}, "PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:0"),
        (
            {"free_port": True, "assignments": ["listeners=PLAINTEXT://127.0.0.1:7000"]},
            "PLAINTEXT://127.0.0.1:7000",
            "PLAINTEXT://127.0.0.1:7000",
        ),
    ],
)
def test_settings_that_do_not_contradict_are_used(
    arguments: dict[str, object], listeners: str, advertised: str
) -> None:
    topology = BrokerConfig.load(**arguments).topology  # type: ignore[arg-type]
    assert [str(item) for item in topology.broker_listeners] == [listeners]
    assert [str(item) for item in topology.advertised_listeners] == [advertised]


def test_a_protocol_map_that_protects_the_listener_counts_for_the_option_too() -> None:
    """The option's listener is called PLAINTEXT, and the file says what that name stands for."""
    file = ("f", "listener.security.protocol.map=PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT")
    with pytest.raises(ConfigError, match="with SASL_SSL, which is not supported yet"):
        BrokerConfig.load(listen="127.0.0.1:7000", file=file)


def test_an_option_does_not_undo_names_that_other_settings_use() -> None:
    for setting in ("inter.broker.listener.name=INSIDE", "security.inter.broker.protocol=SASL_PLAINTEXT"):
        with pytest.raises(ConfigError, match="is not an advertised listener"):
            BrokerConfig.load(listen="127.0.0.1:7000", file=("f", setting))
    with pytest.raises(ConfigError, match="but listeners has only PLAINTEXT"):
        BrokerConfig.load(listen="127.0.0.1:7000", file=("f", "advertised.listeners=SASL_PLAINTEXT://box:9092"))


def test_folders_of_a_file_are_replaced_as_a_whole() -> None:
    file = ("f", "log.dirs=/one,/two\nlog.dir=/three")
    assert BrokerConfig.load(file=file, data_dir="/new").data_dirs == ["/new"]
    kept = BrokerConfig.load(file=file, data_dir="/new", assignments=["metadata.log.dir=/meta"])
    assert kept.data_dirs == ["/new", "/meta"]
    everything = ("f", "log.dirs=/one,/two\nmetadata.log.dir=/meta")
    assert BrokerConfig.load(file=everything, temporary_dir="/tmp/x").data_dirs == ["/tmp/x"]


def test_synonyms_of_one_layer_count_as_in_kafka() -> None:
    config = BrokerConfig.load(file=("f", "log.retention.hours=168\nlog.retention.ms=5"))
    assert config.topic_defaults()["retention.ms"] == 5
    above = BrokerConfig.load(file=("f", "log.retention.hours=168"), assignments=["log.retention.ms=7"])
    assert above.topic_defaults()["retention.ms"] == 7
