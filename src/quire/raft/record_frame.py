"""A metadata record in the value of a log record: frame version, record type and version, then the record.

All three are unsigned varints; the frame version is 1. A type or version that this node does not know is an error,
because this node's image would differ from that of the others if it skipped the record.
"""

from quire.protocol import varints
from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.metadata_records import RECORD_TYPES
from quire.protocol.schema import Message
from quire.raft.errors import MetadataLogError
from quire.seams import Buffer

FRAME_VERSION = 1

_UPGRADE = "upgrade this node to the version that wrote it"


class UnknownRecordError(MetadataLogError):
    """The log or snapshot holds a record of a kind that this node does not know, or that is damaged."""


def encode_frame(record: Message, version: int) -> bytes:
    out = bytearray()
    varints.write(out, FRAME_VERSION)
    varints.write(out, record.API_KEY)
    varints.write(out, version)
    encoder(type(record), version)(record, out)
    return bytes(out)


def decode_frame(value: Buffer | None) -> Message:
    view = memoryview(value or b"")
    try:
        frame_version, position = varints.read(view, 0)
        api_key, position = varints.read(view, position)
        version, position = varints.read(view, position)
        if frame_version != FRAME_VERSION:
            raise UnknownRecordError(
                f"a metadata record has frame version {frame_version}, and this node knows {FRAME_VERSION}; {_UPGRADE}"
            )
        record_type = RECORD_TYPES.get(api_key)
        if record_type is None:
            raise UnknownRecordError(
                f"there is a metadata record of type {api_key}, which this node does not know; {_UPGRADE}"
            )
        oldest, newest = record_type.VERSIONS
        if not oldest <= version <= newest:
            raise UnknownRecordError(
                f"there is a {record_type.__name__} in version {version}, and this node knows {oldest} to {newest}; "
                f"{_UPGRADE}"
            )
        record, position = decoder(record_type, version)(view, position)
    except (IndexError, ProtocolError) as error:
        raise UnknownRecordError(f"a metadata record cannot be read: {error}") from error
    if position != len(view):
        raise UnknownRecordError(f"a {record_type.__name__} has {len(view) - position} bytes too many")
    return record
