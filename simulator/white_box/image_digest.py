"""A hash of an image of the cluster's metadata: two images are equal if and only if their digests are.

It covers the records of a snapshot of the image, not its offset.
"""

from hashlib import blake2b

from quire.metadata.features import record_version
from quire.metadata.image import ClusterImage
from quire.metadata.snapshot import records_of
from quire.raft.record_frame import encode_frame


def image_digest(image: ClusterImage) -> str:
    digest = blake2b(digest_size=16)
    level = image.metadata_version
    for record in records_of(image):
        content = encode_frame(record, record_version(record, level))
        digest.update(len(content).to_bytes(4, "big"))
        digest.update(content)
    return digest.hexdigest()
