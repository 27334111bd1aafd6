"""No setting that should protect a node is accepted silently while Quire cannot enforce it."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError

NO_EFFECT = (
    "{} has no effect, because Quire has no TLS, SASL or access control yet: remove it, and see SECURITY.md.".format
)


@pytest.mark.parametrize(
    "assignment",
    [
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.jaas.config=PlainLoginModule required password=hunter2;",
        "ssl.keystore.location=/etc/quire/keys.jks",
        "ssl.client.auth=required",
        "delegation.token.secret.key=hunter2",
        "connections.max.reauth.ms=3600000",
    ],
)
def test_a_setting_without_effect_is_an_error_that_repeats_no_secret(assignment: str) -> None:
    name = assignment.partition("=")[0]
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(assignments=[assignment])
    assert caught.value.message == NO_EFFECT(f"--set {name}")
    variable = f"QUIRE_{name.upper().replace('.', '_')}"
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(environment={variable: assignment.partition("=")[2]})
    assert caught.value.message == NO_EFFECT(f"environment variable {variable}: {name}")


def test_a_file_that_kafka_would_serve_in_plaintext_too_starts_with_a_warning() -> None:
    text = "listeners=PLAINTEXT://127.0.0.1:9092\nssl.keystore.location=/keys\nssl.keystore.password=hunter2\n"
    (warning,) = BrokerConfig.load(file=("server.properties", text)).warnings
    assert warning == (
        "ssl.keystore.location (server.properties line 2), ssl.keystore.password (server.properties line 3) have no "
        "effect: Quire has no TLS, SASL or access control yet, and its listeners are open to everyone who reaches them"
    )


@pytest.mark.parametrize("setting", ["ssl.client.auth=none", "sasl.enabled.mechanisms=GSSAPI", "ssl.cipher.suites="])
def test_a_default_asks_for_nothing(setting: str) -> None:
    assert BrokerConfig.load(assignments=[setting]).warnings == []


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("super.users=User:admin", "Quire does not check who may do what yet"),
        ("allow.everyone.if.no.acl.found=false", "Quire does not check who may do what yet"),
        ("authorizer.class.name=org.example.Authorizer", "Quire does not check who may do what yet"),
        ("principal.builder.class=org.example.Builder", "Quire does not load Java classes"),
        ("listener.name.nowhere.ssl.client.auth=required", "Quire has no TLS, SASL or access control yet"),
        ("listener.name.inside.plain.sasl.jaas.config=hunter2", "Quire has no TLS, SASL or access control yet"),
        ("listener.name.inside.max.connections=5", "Quire has no settings for one listener yet"),
    ],
)
def test_settings_that_kafka_would_enforce_are_refused_in_a_file_too(setting: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(file=("server.properties", setting))
    assert caught.value.message.startswith("server.properties line 1: ")
    assert f"is not supported: {reason}. Remove it." in caught.value.message
    assert "hunter2" not in caught.value.message
