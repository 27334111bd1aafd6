"""Validates a produced batch and converts it to the form that its topic stores, before it is appended.

The check decompresses the batch and walks its records, compresses them as the topic's compression.type says, and sets
the timestamp if the topic has LogAppendTime. A small batch takes microseconds, on the event loop. A large one may take
seconds, and runs in a job: the check needs only the bytes and the topic's settings.

    check = BatchCheck(records, partition.settings, now_ms)
    check.run(Expansion(limit, at_once_bytes))      on the loop; False if that would take too long
    check.run(Expansion(limit))                     in a job
    leader.append(..., check=check)                 on the loop: assigns offsets, or raises the error of the check
"""

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import BatchHeader, Compression, check_plain, read_header, rewrite, validate
from quire.protocol.records.batch import CODEC_MASK, CODEC_POSITION, HEADER_BYTES, LOG_APPEND_TIME, set_max_timestamp
from quire.protocol.records.expansion import Expansion, TakesLongError
from quire.replication.scratch import give_back_scratch, take_scratch
from quire.replication.settings import PartitionSettings
from quire.seams import Buffer

AT_ONCE_BYTES = 1024 * 1024
"""How much the event loop may decompress for one request: a millisecond or two, with any codec."""

PLAIN_BYTES_PER_COST = 8
"""How much faster it is to walk uncompressed records than to decompress them."""
_COMPRESSED_BYTE_COST = 4
_COMPRESS_COST = 32
"""How much longer compressing a byte takes than decompressing it, at a codec's default level."""
_COMPRESS_WITH_LEVEL_COST = 256
"""The same at the highest levels."""


class BatchCheck:
    __slots__ = ("_error", "_header", "_now_ms", "_view", "settings")

    def __init__(self, records: Buffer, settings: PartitionSettings, now_ms: int) -> None:
        """`records` is patched in place: nothing else may use it until the batch is appended."""
        self.settings = settings
        self._now_ms = now_ms
        self._view = memoryview(records)
        self._header: BatchHeader | None = None
        self._error: ApiError | None = None

    def run(self, expansion: Expansion) -> bool:
        """Whether the check is done; False if it takes longer than `expansion` allows at once."""
        try:
            self._run(expansion)
        except TakesLongError:
            return False
        except ApiError as error:
            self._error = error
        return True

    def result(self) -> tuple[memoryview, BatchHeader]:
        """The batch as the topic stores it; ApiError if it is refused."""
        if self._error is not None:
            raise self._error
        assert self._header is not None, "a batch was appended before its check was done"
        return self._view, self._header

    def _run(self, expansion: Expansion) -> None:
        view = self._view
        if len(view) > CODEC_POSITION and view[CODEC_POSITION] & CODEC_MASK:
            scratch = take_scratch()
            try:
                self._run_with(expansion, scratch)
            finally:
                give_back_scratch(scratch)
        else:
            self._run_with(expansion, None)

    def _run_with(self, expansion: Expansion, scratch: bytearray | None) -> None:
        settings = self.settings
        header, section = self._checked(expansion, scratch)
        codec = settings.compression
        if codec is not None and codec is not header.compression:
            header = self._recompress(header, section, codec, expansion)
        if settings.log_append_time:
            set_max_timestamp(self._view, header, LOG_APPEND_TIME, self._now_ms)
        self._header = header

    def _checked(self, expansion: Expansion, scratch: bytearray | None) -> tuple[BatchHeader, Buffer]:
        settings, view = self.settings, self._view
        expansion.take_at_once(len(view) // PLAIN_BYTES_PER_COST)
        header = check_plain(
            view,
            settings.max_message_bytes,
            settings.compacted,
            self._now_ms,
            settings.timestamp_before_max_ms,
            settings.timestamp_after_max_ms,
        )
        if header is not None:
            return header, view[HEADER_BYTES:]
        if scratch is not None:
            expansion.take_at_once(len(view) * _COMPRESSED_BYTE_COST)
        sections: list[Buffer] = []
        headers = validate(
            view,
            max_batch_bytes=settings.max_message_bytes,
            require_key=settings.compacted,
            now_ms=self._now_ms,
            timestamp_before_max_ms=settings.timestamp_before_max_ms,
            timestamp_after_max_ms=settings.timestamp_after_max_ms,
            expansion=expansion,
            sections=sections,
            scratch=scratch,
        )
        return headers[0], sections[0]

    def _recompress(
        self, header: BatchHeader, section: Buffer, codec: Compression, expansion: Expansion
    ) -> BatchHeader:
        settings = self.settings
        if codec is not Compression.NONE:
            level = settings.compression_level
            expansion.take_at_once(len(section) * (_COMPRESS_COST if level is None else _COMPRESS_WITH_LEVEL_COST))
        kept = rewrite(self._view, header, compression=codec, level=settings.compression_level, section=section)
        if len(kept) > settings.max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {len(kept)} bytes as its topic stores it, and {settings.max_message_bytes} are allowed",
            )
        self._view = memoryview(kept)
        return read_header(kept)
