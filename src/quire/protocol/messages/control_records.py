"""What control batches hold: transaction markers, and the records Raft writes into a log for itself.

A control record's key is a ControlRecordTypeSchema whose version stands in front of it; its value is one of the others.
"""

from quire.protocol.schema import Message, Struct, array, int16, int32, int64, nested, string, uint16, uuid


class ControlRecordTypeSchema(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = None

    type: int = int16("0+")


class EndTxnMarker(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = None

    coordinator_epoch: int = int32("0+")


class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message):
    API_KEY = -1
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter, "0+")
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter, "0+")


class SnapshotHeaderRecord(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


class SnapshotFooterRecord(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    version: int = int16("0+")


class KRaftVersionRecord(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    version: int = int16("0+")
    k_raft_version: int = int16("0+")


class Endpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class VotersRecordVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")
    endpoints: list[Endpoint] = array(Endpoint, "0+")
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature, "0+")


class VotersRecord(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    version: int = int16("0+")
    voters: list[VotersRecordVoter] = array(VotersRecordVoter, "0+")
