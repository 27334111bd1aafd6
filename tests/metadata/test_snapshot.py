"""An image, its records, and the image built from them are equal."""

import pytest

from quire.metadata.delta import ImageDelta
from quire.metadata.features import record_version
from quire.metadata.replay import replay
from quire.metadata.snapshot import image_of, records_of
from quire.protocol.codec import decode, encode
from tests.metadata.clusters import SEEDS, history


@pytest.mark.parametrize("seed", SEEDS)
def test_replaying_an_images_records_gives_the_image(seed: int) -> None:
    image = image_of(history(seed))
    assert image_of(records_of(image)) == image


@pytest.mark.parametrize("seed", SEEDS)
def test_the_records_survive_being_written_and_read(seed: int) -> None:
    image = image_of(history(seed))
    read = []
    for record in records_of(image):
        version = record_version(record, image.metadata_version)
        read.append(decode(type(record), encode(record, version), version))
    assert image_of(read) == image


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_images_have_equal_records(seed: int) -> None:
    image = image_of(history(seed))
    assert list(records_of(image_of(records_of(image)))) == list(records_of(image))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_changes_apart_from_its_original(seed: int) -> None:
    told = history(seed)
    half = image_of(told[:30])
    before = image_of(records_of(half))
    twin = half.copy()
    assert twin == half
    for record in told[30:]:
        replay(twin, record, ImageDelta())
    assert twin == image_of(told)
    assert half == before
