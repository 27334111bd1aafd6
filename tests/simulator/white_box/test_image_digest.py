"""Digests of images: equal for equal images, different for any change in them."""

from quire.metadata.image import ClusterImage, ConfigResource
from simulator.white_box.image_digest import image_digest


def test_equal_images_have_equal_digests_for_any_order_of_changes() -> None:
    one, other = ClusterImage(), ClusterImage()
    resource = ConfigResource(2, "t")
    one.configs[resource] = {"a": "1", "b": "2"}
    other.configs[resource] = {"b": "2", "a": "1"}
    assert image_digest(one) == image_digest(other)


def test_a_difference_anywhere_changes_the_digest() -> None:
    digests = {image_digest(ClusterImage())}
    digests.add(image_digest(ClusterImage(features={"metadata.version": 25})))
    digests.add(image_digest(ClusterImage(next_producer_id=1000)))
    digests.add(image_digest(ClusterImage(configs={ConfigResource(2, "t"): {"a": "1"}})))
    digests.add(image_digest(ClusterImage(configs={ConfigResource(2, "t"): {"a": "2"}})))
    assert len(digests) == 5
