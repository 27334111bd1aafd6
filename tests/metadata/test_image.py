"""The image of the cluster: copies, and look-ups that stay right when it changes."""

from quire.metadata.image import ClusterImage, TopicImage


def image_with(*names: str) -> ClusterImage:
    image = ClusterImage()
    for number, name in enumerate(names):
        image.add_topic(TopicImage(name, number.to_bytes(16)))
    return image


def test_a_copy_has_the_same_look_ups() -> None:
    image = image_with("a.b", "c")
    twin = image.copy()
    assert twin == image
    assert twin.colliding_topic("a_b") == "a.b"
    assert twin.topics_by_id[twin.topics_by_name["c"].topic_id] is twin.topics_by_name["c"]


def test_a_copy_and_its_origin_change_independently() -> None:
    image = image_with("a.b", "c.d")
    twin = image.copy()
    twin.remove_topic(twin.topics_by_name["a.b"])
    image.remove_topic(image.topics_by_name["c.d"])
    twin.add_topic(TopicImage("e.f", b"e" * 16))
    image.add_topic(TopicImage("c-d", b"c" * 16))
    assert [list(each.topics_by_name) for each in (image, twin)] == [["a.b", "c-d"], ["c.d", "e.f"]]
    collisions = [[each.colliding_topic(name) for name in ("a_b", "c_d", "e_f")] for each in (image, twin)]
    assert collisions == [["a.b", None, None], [None, "c.d", "e.f"]]
