"""Which of Kafka's compression codecs this installation can read.

A client that cannot decompress a batch fails at it again after each start, and producers choose the
codec: their own, or that of the topic's ``compression.type``.
"""

from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

CODECS: Final = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Kafka's numbers for them, in the attributes of a batch."""
_SAMPLE: Final = b"Are you still there? " * 40  # shorter ones are not compressed


def unreadable() -> list[str]:
    """The codecs whose batches cannot be read."""
    return [name for name in CODECS if not _reads(name)]


def _reads(name: str) -> bool:
    """Whether a batch that is compressed with the codec can be read again."""
    try:
        records = MemoryRecords(_compressed(CODECS[name]))
        batch = records.next_batch()
        return batch is not None and [record.value for record in batch] == [_SAMPLE]
    except Exception:  # noqa: BLE001  # the codec packages raise errors of their own
        return False


def _compressed(codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2 * len(_SAMPLE),
    )
    builder.append(0, timestamp=0, key=None, value=_SAMPLE, headers=[])
    return bytes(builder.build())
