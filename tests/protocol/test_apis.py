"""The table of APIs: keys, names, versions, header versions, and classes that are imported when they are needed."""

import subprocess
import sys

import pytest

from quire.protocol import apis


def test_names_and_keys_belong_together() -> None:
    assert apis.API_NAMES[0] == "Produce"
    assert apis.api_key("ListOffsets") == 2
    assert apis.VALID_VERSIONS[apis.api_key("Fetch")] == (4, 18)
    assert apis.api(1).name == "Fetch"


def test_an_unknown_api_is_a_key_error() -> None:
    for look_up in (apis.request_class, apis.response_class, apis.api):
        with pytest.raises(KeyError):
            look_up(999)
    with pytest.raises(KeyError):
        apis.api_key("Nonsense")


@pytest.mark.parametrize("key", apis.API_NAMES)
def test_every_api_has_classes_that_agree_with_the_table(key: int) -> None:
    for message in (apis.request_class(key), apis.response_class(key)):
        assert message.__name__.startswith(apis.API_NAMES[key])
        assert key == message.API_KEY
        assert apis.VALID_VERSIONS[key] == message.VERSIONS
        assert apis.api(key).flexible == message.FLEXIBLE


def test_flexible_versions_have_flexible_headers() -> None:
    produce = apis.api_key("Produce")
    assert [apis.request_header_version(produce, version) for version in (8, 9)] == [1, 2]
    assert [apis.response_header_version(produce, version) for version in (8, 9)] == [0, 1]
    assert apis.request_header_version(apis.api_key("SaslHandshake"), 1) == 1


def test_the_response_header_of_api_versions_is_never_flexible() -> None:
    assert apis.request_header_version(18, 3) == 2
    assert apis.response_header_version(18, 3) == 0


def test_message_modules_are_imported_at_their_first_use() -> None:
    script = (
        "import sys; from quire.protocol import apis; "
        "loaded = lambda: [name for name in sys.modules if name.startswith('quire.protocol.messages.')]; "
        "assert not loaded(), loaded(); apis.request_class(0); "
        "assert loaded() == ['quire.protocol.messages.produce'], loaded()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
